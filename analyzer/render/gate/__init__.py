"""Forms of a gate's result."""
