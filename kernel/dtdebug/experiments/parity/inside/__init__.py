"""Runs in the ranks of a job: notes chosen steps and compares them."""
