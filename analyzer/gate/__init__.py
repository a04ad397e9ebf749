"""Runs held against a baseline in CI: verdicts by metric, the files it keeps, its history.

Which function makes which number, by the words on the screen:

    gate: verdict                gate.verdict:gate
    gate: change, interval, why  gate.metrics:time_rows
    gate: exact metrics          gate.metrics:exact_verdicts
    gate: jumped by, drifts by   gate.history:trend
"""
