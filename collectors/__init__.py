"""Ways to record a run, a module each."""
