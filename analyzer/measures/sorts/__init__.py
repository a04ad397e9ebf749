"""What sort of run it is, a module for each fact: its signs as a table, and what they say of a run together."""
