"""Kineto."""
