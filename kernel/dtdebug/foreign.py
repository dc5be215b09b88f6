"""Texts of objects of the user: whatever their classes do when they are asked."""

from __future__ import annotations

RAISES = (Exception, SystemExit, GeneratorExit)
"""What such a class may raise where it is only asked; the user's own interrupt goes through."""


def text(value: object, most: int) -> str:
    """At most so many characters of `str(value)`, as a plain `str`; raises one of `RAISES`."""
    return str.__getitem__(str(value), slice(most))  # an own class of text may do anything in its methods
