"""Commands of the built-in workloads: options, starting the ranks, what each rank runs."""
