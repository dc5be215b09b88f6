"""Code inside a rank, which keeps the rank's record fresh and answers requests."""
