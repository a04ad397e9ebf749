"""Ways to record a run, a module for each command; `workloads/`, `torchrun/`, `servers/`, `hosts/` do the work."""
