"""How the ranks split the work, and how that came to be known."""
