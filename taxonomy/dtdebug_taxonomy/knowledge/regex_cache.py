"""Cache of regular expressions that an earlier process compiled.

Python compiles each pattern again in every process, which takes 0.17 of the 0.4 s of a short command. A compiled
pattern is a list of numbers that depends only on the pattern and on Python's release. Only patterns that a module
compiles on import, and patterns of the knowledge, are kept: they can't contain anything of the user's.
"""

# ruff: noqa: SLF001 - Python's own compiler has no public way to write a pattern down

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

import msgspec

from dtdebug_taxonomy import __version__
from dtdebug_taxonomy.storage import read_stamped, write_stamped

_NAME = "compiled.cache"
_LIMIT = 4 << 20
"""Maximum size in bytes; above it, entries that this process did not use are dropped."""

_OF_KNOWLEDGE = {
    ("dtdebug_taxonomy.text.pattern_matcher", "_compiled"),
    ("dtdebug_taxonomy.inference.message_cures", "_compiled"),
}
"""Module and function that compile the knowledge's patterns, and no others."""

_Row = tuple[int, list[int], int, dict[str, int], list[str | None]]
"""Arguments of `_sre.compile` besides the pattern: flags, code, number of groups, their indices, their names."""


@contextmanager
def compiled_before() -> Iterator[None]:
    """Compile patterns from the cache, and store new ones; for processes of our own only.

    Replaces Python's compiler meanwhile. A Python with other internals, or a folder that can't be read or written,
    costs time only.
    """
    try:
        compiler: Any = re._compiler  # type: ignore[attr-defined]
        made = _Compiler(compiler.compile, compiler)
    except AttributeError:
        yield
        return
    compiler.compile = made
    try:
        yield
    finally:
        compiler.compile = made.original
        made.keep()


class _Compiler:
    def __init__(self, original: Callable[..., re.Pattern[Any]], parts: Any) -> None:
        self.original = original
        self._parse: Callable[..., Any] = parts._parser.parse
        self._code: Callable[..., list[int]] = parts._code
        self._build: Callable[..., re.Pattern[Any]] = parts._sre.compile
        python = " ".join(sys.version.split())
        self._stamp = f"{__version__} {msgspec.__version__} {parts._sre.MAGIC} {python}\n".encode()
        self._kept = self._read()
        self._used: dict[str, msgspec.Raw] = {}
        self._new: dict[str, _Row] = {}
        self._row = msgspec.msgpack.Decoder(_Row)

    def __call__(self, pattern: Any, flags: int = 0) -> re.Pattern[Any]:
        if not isinstance(pattern, str) or flags & re.DEBUG:
            return self.original(pattern, flags)
        key = f"{int(flags)} {pattern}"
        if (raw := self._kept.get(key)) is not None:
            with suppress(msgspec.MsgspecError, RuntimeError, ValueError, TypeError, OverflowError):
                made = self._build(pattern, *_arguments(self._row.decode(raw)))
                self._used[key] = raw
                return made
        if not _ours(sys._getframe(1)) or not _writable(pattern):
            return self.original(pattern, flags)
        tree = self._parse(pattern, flags)
        names: list[str | None] = [None] * tree.state.groups
        for name, index in tree.state.groupdict.items():
            names[index] = name
        code = [int(number) for number in self._code(tree, flags)]
        row = (int(flags | tree.state.flags), code, tree.state.groups - 1, tree.state.groupdict, names)
        self._new[key] = row
        return self._build(pattern, *_arguments(row))

    def _read(self) -> dict[str, msgspec.Raw]:
        if (data := read_stamped(_NAME, self._stamp, _LIMIT + 1)) is not None:
            with suppress(msgspec.MsgspecError):
                return msgspec.msgpack.decode(data, type=dict[str, msgspec.Raw])
        return {}

    def keep(self) -> None:
        """Write the cache if it has new entries."""
        if not self._new:
            return
        rows: dict[str, msgspec.Raw | _Row] = {**self._kept, **self._new}
        data = msgspec.msgpack.encode(rows)
        if len(data) + len(self._stamp) > _LIMIT:
            data = msgspec.msgpack.encode({**self._used, **self._new})
        write_stamped(_NAME, self._stamp, data)


def _arguments(row: _Row) -> tuple[int, list[int], int, dict[str, int], tuple[str | None, ...]]:
    return *row[:4], tuple(row[4])


def _writable(pattern: str) -> bool:
    """True if the pattern has no lone surrogate, which no file can store."""
    try:
        pattern.encode()
    except UnicodeEncodeError:
        return False
    return True


def _ours(frame: FrameType | None) -> bool:
    """True if a module compiles this on import, in its own lines or in a function that they call.

    Also true for functions that compile the knowledge's patterns.
    """
    while frame is not None and frame.f_globals.get("__name__") in ("re", "functools"):
        frame = frame.f_back
    module = frame.f_globals if frame is not None else {}
    if frame is not None and (module.get("__name__"), frame.f_code.co_name) in _OF_KNOWLEDGE:
        return True
    while frame is not None and frame.f_globals is module:
        if frame.f_code.co_name == "<module>":
            return module.get("__name__") != "__main__"
        frame = frame.f_back
    return False
