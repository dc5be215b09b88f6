"""Runs and watches a job as a whole, reads how its ranks ended and makes one case of the results."""
