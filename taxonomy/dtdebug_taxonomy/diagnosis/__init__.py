"""From a snapshot of a failure to its diagnosis."""
