"""Judges reports and probes: pure functions from host records to findings."""
