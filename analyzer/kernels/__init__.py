"""Kernel names, a module a library."""
