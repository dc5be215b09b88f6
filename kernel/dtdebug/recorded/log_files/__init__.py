"""Reads logs of any size."""
