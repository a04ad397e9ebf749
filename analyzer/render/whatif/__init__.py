"""Forms of what one run lets expect."""
