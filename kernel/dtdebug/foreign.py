"""Texts of objects of the user: whatever their classes do when they are asked."""

from __future__ import annotations

import dis
from typing import Any

RAISES = (Exception, SystemExit, GeneratorExit)
"""What such a class may raise where it is only asked; the user's own interrupt goes through."""
_RAISE = dis.opmap["RAISE_VARARGS"]


class NoTextError(Exception):
    """The class of an object interrupts whoever asks for its text."""


def bounded_text(value: object, most: int) -> str:
    """At most so many characters of `str(value)`, as a plain `str`; raises one of `RAISES`."""
    try:
        return str.__getitem__(str(value), slice(most))  # an own class of text may do anything in its methods
    except KeyboardInterrupt as error:
        if not _is_raised(error):
            raise
        raise NoTextError from None


def attribute(owner: object, name: str, otherwise: Any = None) -> Any:
    """An attribute, or what stands for it where reading it raises: that may run any code."""
    try:
        return getattr(owner, name, otherwise)
    except RAISES:
        return otherwise
    except KeyboardInterrupt as error:
        if not _is_raised(error):
            raise
        return otherwise


def _is_raised(error: BaseException) -> bool:
    """A `raise` of the program raised this; the user's interrupt comes in the middle of any other instruction."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_lasti >= 0 and trace.tb_frame.f_code.co_code[trace.tb_lasti] == _RAISE
