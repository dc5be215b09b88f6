"""Asks ranks where they are, through all available channels, and compares their answers."""
