"""Converts user objects to text and reads their attributes safely, even if their classes raise."""

from __future__ import annotations

import dis
from typing import Any

RAISES = (Exception, SystemExit, GeneratorExit)
"""Exceptions that such a class may raise; the user's own interrupt passes through."""
_RAISE = dis.opmap["RAISE_VARARGS"]


class NoTextError(Exception):
    """Raised if an object's class raises KeyboardInterrupt when it is converted to text."""


def bounded_text(value: object, most: int) -> str:
    """Return at most `most` characters of `str(value)`, as a plain `str`; raises one of `RAISES`."""
    try:
        return str.__getitem__(str(value), slice(most))  # a subclass of str may do anything in its methods
    except KeyboardInterrupt as error:
        if not _is_raised(error):
            raise
        raise NoTextError from None


def attribute(owner: object, name: str, otherwise: Any = None) -> Any:
    """Return an attribute, or `otherwise` if it is missing or reading it raises: a property may run any code."""
    try:
        return getattr(owner, name, otherwise)
    except RAISES:
        return otherwise
    except KeyboardInterrupt as error:
        if not _is_raised(error):
            raise
        return otherwise


def _is_raised(error: BaseException) -> bool:
    """True if a `raise` statement raised this; the user's interrupt arrives at any other instruction."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_lasti >= 0 and trace.tb_frame.f_code.co_code[trace.tb_lasti] == _RAISE
