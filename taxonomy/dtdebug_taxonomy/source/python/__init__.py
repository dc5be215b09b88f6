"""Reads Python programs: names, values, ranks, and who comes to a line."""
