"""Reads users' files (programs, notebooks, scripts, configuration) without running or importing any of it."""
