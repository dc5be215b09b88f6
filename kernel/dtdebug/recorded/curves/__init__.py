"""Reads the curves of a training: losses, norms, rates and times over its steps, and finds what is wrong with them."""
