"""Subcommands, a module each: parse, call, write, exit."""
