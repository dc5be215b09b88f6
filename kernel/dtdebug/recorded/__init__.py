"""Readers of what a job left behind: flight-recorder dumps, logs, profiler traces."""
