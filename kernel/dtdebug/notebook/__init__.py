"""Inspects the ranks of a notebook while a cell hangs, and finds the rank that the others wait for."""
