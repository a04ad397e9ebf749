"""Torchrun."""
