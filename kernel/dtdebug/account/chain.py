"""Chooses the exception of a chain that explains the failure, and the frames above it."""

from __future__ import annotations

import re
import signal
import types
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from dtdebug.account.objects import MISSING, bases, is_exactly, is_kind, item, module_of, qualified_name, stored
from dtdebug.account.values import one_line, text_of
from dtdebug_taxonomy.model.account import MAX_TEXT

_DEEPEST = 16
_CARRIED = ("inner_exception", "from_exc")
"""Attributes in which `torch.compile` keeps the exception of the user's frame."""
_ARGS: Any = BaseException.__dict__["args"]
_TRACE: Any = BaseException.__dict__["__traceback__"]
_CAUSE: Any = BaseException.__dict__["__cause__"]


def explaining(value: BaseException) -> tuple[BaseException, list[TracebackType]]:
    """Return the first exception of a chain of causes, and the frames above those of its own traceback."""
    before: list[TracebackType] = []
    seen = {id(value)}
    for _ in range(_DEEPEST):
        inner = _inside(value)
        if inner is None or id(inner) in seen:
            break
        seen.add(id(inner))
        before = _above([*before, *traces(value)], inner)
        value = inner
    return value, before


def traces(value: BaseException) -> list[TracebackType]:
    """Return the traceback of an exception as a list, outermost first."""
    found: list[TracebackType] = []
    trace = _TRACE.__get__(value)
    while trace is not None and len(found) < 10_000:
        found.append(trace)
        trace = trace.tb_next
    return found


def _above(outer: list[TracebackType], inner: BaseException) -> list[TracebackType]:
    """Return the outer frames down to the one in which the inner exception's traceback begins."""
    own = traces(inner)
    for number, trace in enumerate(outer):
        if own and trace.tb_frame is own[0].tb_frame:
            return outer[:number]
    return []


def _inside(value: BaseException) -> BaseException | None:
    """Return the exception that another one reports."""
    if is_kind(value, BaseExceptionGroup):
        members = BaseExceptionGroup.__dict__["exceptions"].__get__(value)
        return members[0] if type(members) is tuple and members else None
    own = stored(value)
    for name in _CARRIED:
        found = item(own, name)
        if is_kind(found, BaseException) and traces(found):
            return found  # type: ignore[no-any-return]
    failure = _failure_in(value)
    if failure is not None and traces(failure):
        return failure
    cause = _CAUSE.__get__(value)
    return cause if cause is not None and traces(cause) else None


def _failure_in(value: BaseException) -> BaseException | None:
    """Return what the first rank of a distributed checkpoint failed with; it may come from another process."""
    failures = item(stored(value), "_failures")
    for each in list(failures.values())[:1] if type(failures) is dict else []:
        first = each[0] if type(each) is tuple and each else each
        if is_kind(first, BaseException):
            return first  # type: ignore[no-any-return]
    return None


def is_of_signal(rows: Sequence[TracebackType]) -> bool:
    """True if one of the frames is a signal's handler: the line that it arrived at is not the cause."""
    handlers: list[object] = [signal.getsignal(number) for number in signal.valid_signals()]
    codes = {id(each.__code__) for each in handlers if type(each) is types.FunctionType}
    return any(id(row.tb_frame.f_code) in codes for row in rows)


_NO_SAVED_FILE, _READ = re.compile(r"WeightsUnpickler error:\s{1,4}(Unsupported operand \d{1,4})"), 8_000
"""Message on a file that no `torch.save` wrote; number of characters of a message that are searched."""
_PATH, _LONGEST = "No such file or directory", 4 * MAX_TEXT
"""Message that ends with a path, which may be long and tells nothing if it is cut."""


def describe(value: BaseException) -> str:
    """Return class and first line of the message, by the text that Python itself makes of it."""
    kind = type(value)
    name = qualified_name(kind)
    for prefix in ("builtins.", "__main__."):
        name = name.removeprefix(prefix)
    message = message_of(value)
    first = message.strip().split("\n", 1)[0]
    if (no_file := _NO_SAVED_FILE.search(message[:_READ])) is not None:
        first = f"no file of torch.save: {no_file[1]}"  # the lines before it speak of a file that holds other classes
    return one_line(f"{name}: {first}" if first else name, _LONGEST if _PATH in first else MAX_TEXT)


def messages_of(value: BaseException) -> str:
    """Return the message, and that of what the first rank of a distributed checkpoint failed with."""
    failure = _failure_in(value)
    return "\n".join(message_of(each) for each in (value, failure) if each is not None)


def message_of(value: BaseException) -> str:
    """Return the message, as far as only Python itself makes it."""
    kind = type(value)
    maker = next((k for k in bases(kind) if "__str__" in type.__dict__["__dict__"].__get__(k)), BaseException)
    plain = (str, int, float, bool, type(None))
    arguments = _ARGS.__get__(value)
    if module_of(maker) == "builtins" and all(is_exactly(each, plain) for each in arguments):
        text: Any = type.__dict__["__dict__"].__get__(maker)["__str__"]
        return str(text(value))
    first = arguments[0] if arguments else MISSING
    return first if type(first) is str else "" if first is MISSING else text_of(first)
