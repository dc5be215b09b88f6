"""Runs the checks over sources, within the user's settings, and proves them on examples."""
