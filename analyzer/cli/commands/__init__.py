"""Commands, a module each: parse, call, write, exit."""
