"""Reads what a job printed: lines, the events in them, and the errors that ended it."""
