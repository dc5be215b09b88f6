"""Reads what the operating system shows of a process that seems stuck, from /proc and without stopping it."""
