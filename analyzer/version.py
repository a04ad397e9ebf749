"""The version, once: `pyproject.toml` reads it from here. Asking the installed metadata costs 25 ms of every start."""

VERSION = "0.1.0"
