"""Reads all logs of a job: the rank that failed first, its followers, silent ranks, and reports of the machine."""
