"""Results about the nodes of a program that stay valid from one version of its text to the next.

Each is kept with what it has read beyond the statement of its node: the bindings of a name, the calls of a function.
It holds for the next version if all of that is the same there.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")
Read = tuple[str, Hashable]
"""Table of a program that was read, and the key in it."""
Row = tuple[Any, frozenset[Read]]
Key = tuple[str, ast.AST, Hashable]

VOLATILE: Read = ("", "")
"""Stands for what is not followed from version to version, so that the result holds for one version only."""


class Tables(NamedTuple):
    """Tables of one version of a program, as far as results are kept that read them."""

    bindings: Mapping[Any, Sequence[object]]
    callers: Mapping[Any, Sequence[object]]
    functions: Mapping[Any, Sequence[object]]
    at_top: Mapping[Any, Sequence[object]]
    calls: Mapping[Any, Sequence[object]]
    classes: Mapping[Any, Sequence[object]]
    stores: Mapping[Any, Sequence[object]]

    def changed(self, new: Tables) -> set[Read]:
        """Return what is different in another version: nodes are the same objects where statements are the same."""
        found = {VOLATILE}
        for name, one, other in zip(self._fields, self, new, strict=True):
            found.update((name, key) for key in one.keys() | other.keys() if one.get(key) != other.get(key))
        return found


class Results:
    """Results for one version of a program."""

    def __init__(self, former: Mapping[Key, Row] | None, changed: Callable[[], set[Read]]) -> None:
        """Set the results of the former version, None if no version can be compared, and what has changed since."""
        self.rows: dict[Key, Row] = {}
        self._former = former
        self._find_changed = changed
        self._changed: set[Read] | None = None
        self._reads: set[Read] | None = None
        """Reads of the work in progress; None outside of any."""

    def note(self, table: str, key: Hashable) -> None:
        """Record that a key of a table is read."""
        if self._reads is not None:
            self._reads.add((table, key))

    def note_volatile(self) -> None:
        """Record that something is read that may change from version to version in ways that are not followed."""
        if self._reads is not None:
            self._reads.add(VOLATILE)

    def has(self, key: Key) -> bool:
        """True if a result is known, and valid for this version."""
        return key in self.rows or self._take(key) is not None

    def get(self, key: Key, work: Callable[[], T]) -> T:
        """Return a result; the work is done only if neither this nor the former version knows it."""
        row = self.rows.get(key) or self._take(key) or self._do(key, work)
        if self._reads is not None:
            self._reads |= row[1]
        found: T = row[0]
        return found

    def _take(self, key: Key) -> Row | None:
        row = self._former.get(key) if self._former is not None else None
        if row is None or not self.hold(row[1]):
            return None
        self.rows[key] = row
        return row

    def hold(self, reads: frozenset[Read]) -> bool:
        """True if the former version had the same under all these keys."""
        if self._former is None:
            return False
        if self._changed is None:
            self._changed = self._find_changed()
        return reads.isdisjoint(self._changed)

    def record(self, work: Callable[[], T]) -> tuple[T, frozenset[Read]]:
        """Return the result of some work and what it reads, for a caller that keeps the result."""
        outer, self._reads = self._reads, set()
        try:
            return work(), frozenset(self._reads)
        finally:
            self._reads = outer

    def _do(self, key: Key, work: Callable[[], T]) -> Row:
        row = self.rows[key] = self.record(work)
        return row
