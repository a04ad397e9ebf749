"""Sketch."""
