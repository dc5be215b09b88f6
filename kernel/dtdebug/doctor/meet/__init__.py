"""Hosts meet and measure the way between each other."""
