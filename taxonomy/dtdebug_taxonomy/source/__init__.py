"""Reads what users write (programs, notebooks, scripts, configuration) without running or importing any of it."""
