"""From files to a Run: the only door."""
