"""How a program ends: which line calls `sys.exit` or `os._exit`, and which exception it was that ended it.

Python keeps nothing of such calls: `SystemExit` reaches no hook, and `os._exit` runs nothing at all. So both names lead
through here; the real ones are called in any case, at once.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType, MethodType
from typing import Any, NamedTuple, NoReturn

import msgspec

from dtdebug.agent import frames as stack
from dtdebug.clean import clean
from dtdebug_taxonomy.ranks import Frame

_WORDS = 200
_DEEPEST = 16


class Leaving(NamedTuple):
    """One call that ends the program."""

    call: str
    """As the program wrote it: `sys.exit(2)`."""
    code: int
    message: str
    """What `sys.exit` prints instead of a number."""
    frames: tuple[Frame, ...]
    """Where, innermost last; empty where a library called: that says nothing of the program."""
    handled: BaseException | None
    """The exception that was being handled: command-line frameworks print it and exit."""


def notice(tell: Callable[[Leaving], None]) -> None:
    """Calls `tell` before the main thread of this process, or of a forked one, ends the program."""
    sys.exit = _told(sys.exit, "sys.exit", tell)
    os._exit = _told(os._exit, "os._exit", tell)


def _told(call: Callable[..., NoReturn], name: str, tell: Callable[[Leaving], None]) -> Callable[..., NoReturn]:
    @functools.wraps(call)
    def leave(*arguments: Any, **named: Any) -> NoReturn:
        try:
            if threading.current_thread() is threading.main_thread():
                status = arguments[0] if arguments else next(iter(named.values()), None)
                tell(_leaving(name, status, sys._getframe(1), sys.exc_info()[1]))  # noqa: SLF001 - documented
        except Exception:  # noqa: S110 - the program ends as it wanted to
            pass
        call(*arguments, **named)

    return leave


def _leaving(name: str, status: object, caller: FrameType, handled: BaseException | None) -> Leaving:
    code = status if isinstance(status, int) else 0 if status is None else 1
    message = "" if status is None or isinstance(status, int) else clean(stack.first_line(status))[:_WORDS]
    frames = stack.described(stack.main_thread(), code=True) if stack.is_user(caller) else ()
    shown = f'"{message}"' if message else "" if status is None else str(code)
    found = (handled or _kept(caller)) if code else None
    return Leaving(f"{name}({shown})", code & 0xFF, message, frames, found)


def _kept(caller: FrameType) -> BaseException | None:
    """The exception that a library's function still holds when it exits: click does so after its `except` clauses."""
    if stack.is_user(caller):
        return None
    values = (v.__self__ if type(v) is MethodType else v for v in tuple(caller.f_locals.values()))
    return next((v for v in values if isinstance(v, BaseException) and v.__traceback__ is not None), None)


def primary(value: BaseException) -> tuple[str, tuple[Frame, ...]]:
    """Of an exception and those that it was raised from or after, what says what was wrong, and where it was raised.

    A peer that is lost while the program cleans up after its own error only hides that.
    """
    chain = list(_chain(value))
    try:
        from dtdebug_taxonomy.failure.events import Raised
        from dtdebug_taxonomy.failure.reading import primary as first

        rows = []
        for one in chain:
            kind, _, message = stack.raised(one).partition(": ")
            rows.append(Raised(type=kind, message=message, frames=stack.raised_at(one.__traceback__)))
        last = msgspec.structs.replace(rows[0], before=tuple(reversed(rows[1:])))
        chosen = first(last)
        number = next((n for n, row in enumerate(rows) if row is chosen), 0)
    except Exception:
        number = 0
    return stack.raised(chain[number]), stack.raised_at(chain[number].__traceback__)


def _chain(value: BaseException | None) -> Iterator[BaseException]:
    """The exception, and those before it, the nearest first."""
    seen: set[int] = set()
    while value is not None and id(value) not in seen and len(seen) < _DEEPEST:
        seen.add(id(value))
        yield value
        value = value.__cause__ or (None if value.__suppress_context__ else value.__context__)
