"""What a run is: no input, no output, no arithmetic beyond lookups."""
