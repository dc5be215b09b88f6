"""Reckoners: what printed or stated numbers, of one unit and by one documented rule, show to be impossible or uneven.

Each module has one rule, with its unit and source, and returns an explanation only if the numbers break it.
"""
