"""Pure functions of a Run."""
