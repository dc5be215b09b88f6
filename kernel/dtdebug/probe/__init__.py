"""Asks ranks where they are, by all the ways there are, and compares what they say."""
