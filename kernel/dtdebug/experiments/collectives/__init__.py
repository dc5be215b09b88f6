"""Records, compares, rehearses and replays the collectives of a run."""
