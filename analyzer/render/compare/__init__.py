"""Forms of a comparison."""
