"""Advice that fits a run: flags and their versions, what is followed already, and sentences that rules share."""
