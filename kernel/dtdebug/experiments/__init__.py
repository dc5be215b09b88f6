"""Experiments on a job, with code of ours inside its ranks."""
