"""Hardware figures and schemas: data, not code."""
