"""The analyzer: from traces to a report."""
