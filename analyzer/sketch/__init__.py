"""Timelines drawn in text: the notation of rule examples, tests and reports."""
