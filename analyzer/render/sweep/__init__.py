"""Forms of a sweep."""
