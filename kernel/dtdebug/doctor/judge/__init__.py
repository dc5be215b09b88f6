"""What the looks and probes mean: pure functions from records of hosts to findings."""
