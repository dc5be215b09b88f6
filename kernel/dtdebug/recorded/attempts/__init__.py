"""Attempts of one job: what each of its logs shows, and whether another attempt is worth it."""
