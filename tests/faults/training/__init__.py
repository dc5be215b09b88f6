"""A small training program of several modules, as people write them."""
