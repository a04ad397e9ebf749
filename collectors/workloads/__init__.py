"""What each rank of a built-in workload computes and sends, and how it is profiled. Needs torch."""
