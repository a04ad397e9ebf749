"""Columns of one file into a trace: device work, host calls, records of collectives, origin."""
