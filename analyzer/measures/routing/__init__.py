"""Request logs replayed over workers with prefix caches."""
