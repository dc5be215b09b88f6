"""Records how a program ends: the line that calls `sys.exit`, `exit` or `os._exit`, or raises `SystemExit` itself.

Python keeps nothing of such ends: `SystemExit` reaches no hook, and `os._exit` runs nothing at all. So these functions
are wrapped; the originals are always called, at once. A `raise SystemExit` is seen from Python 3.12 on, by
https://docs.python.org/3/library/sys.monitoring.html, which costs nothing except when an exception is raised.
"""

from __future__ import annotations

import builtins
import functools
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from types import CodeType, FrameType, MethodType
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import msgspec

from dtdebug.live.agent import own_frames as stack
from dtdebug.privacy.sanitize import clean
from dtdebug.process import user_objects
from dtdebug_taxonomy.model.account import Account, Branch
from dtdebug_taxonomy.model.ranks import Frame
from dtdebug_taxonomy.stacks.frames import is_library

if TYPE_CHECKING:
    from dtdebug_taxonomy.logs.events import PrintedException

_WORDS = 200
_DEEPEST = 16
_MESSAGE, _TRACEBACK = 100_000, "Traceback (most recent call last)"
_TOOLS = (4, 3)
"""Ids of `sys.monitoring` that are not reserved by convention."""


class Leaving(NamedTuple):
    """A call that ends the program."""

    call: str
    """Source text of the call: `sys.exit(2)`."""
    code: int
    message: str
    """Text that `sys.exit` prints instead of a number."""
    frames: tuple[Frame, ...]
    """Stack of the call, innermost last; empty if it has no frame of the program."""
    handled: BaseException | None
    """Exception being handled: command-line frameworks print it and exit."""
    library: bool = False
    """True if a library called it, below a line of the program or not."""


def notice(tell: Callable[[Leaving], None]) -> None:
    """Call `tell` before the main thread of this process, or of a forked one, ends the program."""
    sys.exit = _wrap_exit(sys.exit, "sys.exit", tell)
    os._exit = _wrap_exit(os._exit, "os._exit", tell)
    quitter: Any = type(getattr(builtins, "exit", None))
    if quitter.__module__ == "_sitebuiltins":  # type of `exit` and `quit`; the REPL's and IPython's differ
        quitter.__call__ = _wrap_exit(quitter.__call__, "exit", tell, bound=1)
    if sys.version_info >= (3, 12):
        _hear(tell)


def _wrap_exit(
    call: Callable[..., NoReturn], name: str, tell: Callable[[Leaving], None], *, bound: int = 0
) -> Callable[..., NoReturn]:
    """Return a wrapper that reports the call first; `bound`: number of leading arguments that are not the program's."""

    @functools.wraps(call)
    def leave(*arguments: Any, **named: Any) -> NoReturn:
        status = next(iter((*arguments[bound:], *named.values())), None)
        _tell(tell, name, status, sys._getframe(1))  # noqa: SLF001 - documented
        call(*arguments, **named)

    return leave


def _hear(tell: Callable[[Leaving], None]) -> None:
    """Report each `SystemExit` where it is raised, unless other tools use all ids."""
    monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
    tool = next((number for number in _TOOLS if monitoring.get_tool(number) is None), None)
    if tool is None:
        return

    def on_raise(code: CodeType, offset: int, exception: BaseException) -> None:
        trace = exception.__traceback__
        if isinstance(exception, SystemExit) and code.co_filename != __file__ and (trace is None or not trace.tb_next):
            _tell(tell, "raise SystemExit", exception.code, sys._getframe(1))  # noqa: SLF001 - documented

    monitoring.use_tool_id(tool, "dtdebug")
    monitoring.register_callback(tool, monitoring.events.RAISE, on_raise)
    monitoring.set_events(tool, monitoring.events.RAISE)


def _tell(tell: Callable[[Leaving], None], name: str, status: object, caller: FrameType) -> None:
    """Report a call; errors are ignored, so that the program always ends as intended."""
    try:
        by_multiprocessing = caller.f_globals.get("__name__") == "multiprocessing.spawn"  # after any end of a child
        if threading.current_thread() is threading.main_thread() and not by_multiprocessing:
            tell(_leaving(name, status, caller, sys.exc_info()[1]))
    except Exception:  # noqa: S110 - see the docstring
        pass


def _leaving(name: str, status: object, caller: FrameType, handled: BaseException | None) -> Leaving:
    code = status if isinstance(status, int) else 0 if status is None else 1
    library = not stack.is_user(caller)
    said = status if not isinstance(status, int) else _printed(caller) if library and code else None
    message = "" if said is None else clean(stack.first_line(said))[:_WORDS]
    above = stack.main_thread()
    forked = str(caller.f_globals.get("__name__")).startswith("multiprocessing.popen_")  # so ends each forked child
    frames = stack.describe_frames(above, code=True) if any(map(stack.is_user, above)) and not forked else ()
    shown = "" if status is None else str(code) if isinstance(status, int) else f'"{message}"'
    where = f" in {caller.f_globals.get('__name__', 'a library')}" if library else ""
    found = (handled or _held_exception(caller)) if code else None
    return Leaving(f"{name}({shown}){where}", code & 0xFF, message, frames, found, library)


def _printed(caller: FrameType) -> str | None:
    """Return the last line of the message that a library's function prints before it exits, as argparse's do."""
    message = caller.f_locals.get("message")
    return next(iter(message[-_MESSAGE:].strip().splitlines()[-1:]), None) if type(message) is str else None


def _held_exception(caller: FrameType) -> BaseException | None:
    """Return an exception that a library's function still holds when it exits, as click after its `except` clauses."""
    if stack.is_user(caller):
        return None
    values = (v.__self__ if type(v) is MethodType else v for v in tuple(caller.f_locals.values()))
    return next((v for v in values if isinstance(v, BaseException) and v.__traceback__ is not None), None)


def primary(value: BaseException) -> tuple[str, tuple[Frame, ...]]:
    """Return text and stack of the exception in a chain that explains the failure.

    A peer lost while the program cleans up after its own error only hides that error.
    """
    chosen = _choose(value)
    inner = _inside(chosen)
    if inner is not None:
        return clean(inner.text)[:500], inner.frames
    return stack.describe_exception(chosen), _from_the_start(chosen)


def account(value: BaseException) -> Account:
    """Return the account of that exception; the modules for it are imported only here, where a rank has failed."""
    from dtdebug.account.capture import capture

    chosen = _choose(value)
    inner = _inside(chosen)
    if inner is not None:
        from dtdebug.account.printed import of_worker

        told = of_worker(inner, chosen)
        if told.place is not None:
            return told
    return capture(chosen)


def branches(value: BaseException) -> tuple[Branch, ...]:
    """Return the tests and loops around the place of that exception."""
    from dtdebug.account.branches import branches_at

    return branches_at(_choose(value).__traceback__)


def _choose(value: BaseException) -> BaseException:
    """Return the exception of a chain that explains the failure."""
    chain = list(_chain(value))
    if len(chain) > 1:  # only one candidate otherwise, and no need for the import
        with suppress(Exception):
            return chain[_first(chain)]
    return chain[0]


def _inside(value: BaseException) -> PrintedException | None:
    """Return a worker process's exception whose traceback the message holds: `Caught KeyError in DataLoader worker`."""
    with suppress(Exception):
        message = user_objects.bounded_text(value, _MESSAGE)
        if _TRACEBACK in message:
            from dtdebug_taxonomy.logs.event_reader import last_exception
            from dtdebug_taxonomy.logs.exception_roles import called_worker

            if called_worker(message) is not None:
                return None  # a different rank's, which reports it itself
            inner = last_exception(message)
            if inner is not None and inner.frames:
                return inner
    return None


def _first(chain: Sequence[BaseException]) -> int:
    from dtdebug_taxonomy.logs.events import PrintedException
    from dtdebug_taxonomy.logs.log import primary as first

    rows = []
    for one in chain:
        kind, _, message = stack.describe_exception(one).partition(": ")
        rows.append(PrintedException(type=kind, message=message, frames=stack.raised_at(_slot(one, "__traceback__"))))
    last = msgspec.structs.replace(rows[0], before=tuple(reversed(rows[1:])))
    chosen = first(last)
    return next((n for n, row in enumerate(rows) if row is chosen), 0)


def _from_the_start(value: BaseException) -> tuple[Frame, ...]:
    """Return the stack of the exception, with the callers of its handler: argparse exits in a library."""
    trace = _slot(value, "__traceback__")
    frames, before = stack.raised_at(trace), trace.tb_frame.f_back if trace is not None else None
    if any(not is_library(frame.file) for frame in frames):
        return frames
    outer = []
    while before is not None:
        outer.append(before)
        before = before.f_back
    return (*stack.describe_frames(outer[::-1][-_DEEPEST:], code=True), *frames)


def _chain(value: BaseException | None) -> Iterator[BaseException]:
    """Yield the exception, and those before it or the first in a group, the nearest first."""
    seen: set[int] = set()
    while value is not None and id(value) not in seen and len(seen) < _DEEPEST:
        seen.add(id(value))
        yield value
        if issubclass(type(value), BaseExceptionGroup):  # it only holds the exceptions of its tasks
            value = BaseExceptionGroup.__dict__["exceptions"].__get__(value)[0]
        else:
            context = None if _slot(value, "__suppress_context__") else _slot(value, "__context__")
            cause = _slot(value, "__cause__")
            value = cause if cause is not None else context


def _slot(value: BaseException, name: str) -> Any:
    """Return what Python itself keeps in an exception; runs no code of the exception's class."""
    return BaseException.__dict__[name].__get__(value)
