"""The command line: `commands/` holds a module for each command, the rest is what they share."""
