"""Finds known messages and phrases in text, and compares texts."""
