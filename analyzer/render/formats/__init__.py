"""Forms of a report, a module each: `render` and `SUFFIX`."""
