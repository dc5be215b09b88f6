"""Runs in the ranks of a job: checks each step, and repeats the first that is not finite."""
