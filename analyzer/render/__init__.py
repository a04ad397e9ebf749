"""From a Report to text, a module a format."""
