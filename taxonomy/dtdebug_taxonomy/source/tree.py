"""A value of a configuration with its place, whatever language the file is in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from dtdebug_taxonomy.source.text import Span


class Unknown:
    """A value that something puts in later: `${BATCH}`, `{{ lr }}`, `args.batch`."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = Unknown()


class Node(NamedTuple):
    """A value: a number, text, truth value or None; a mapping; a list; `UNKNOWN`."""

    span: Span
    value: object
    """The scalar; `dict[str, Entry]` for a mapping, `list[Node]` for a list."""
    inner: Span
    """Of a text: without its quotes."""

    @property
    def entries(self) -> dict[str, KeyValue]:
        """The entries of a mapping; none for anything else."""
        return self.value if isinstance(self.value, dict) else {}

    @property
    def items(self) -> list[Node]:
        """The elements of a list; none for anything else."""
        return self.value if isinstance(self.value, list) else []

    def get(self, path: str) -> Node | None:
        """The value at dotted keys: `zero_optimization.stage`."""
        entry = self.entry(path)
        return entry.node if entry else None

    def entry(self, path: str) -> KeyValue | None:
        """The entry at dotted keys."""
        node: Node | None = self
        entry: KeyValue | None = None
        for key in path.split("."):
            entry = node.entries.get(key) if node else None
            node = entry.node if entry else None
        return entry

    def walk(self) -> Iterator[tuple[str, KeyValue]]:
        """All entries below, with their dotted keys; lists are passed through, and what aliases share is seen once."""
        todo: list[tuple[str, KeyValue | None, Node]] = [("", None, self)]
        seen: set[int] = set()
        while todo:
            path, entry, node = todo.pop()
            if entry is not None:
                yield path, entry
            if not isinstance(node.value, dict | list) or id(node.value) in seen:
                continue
            seen.add(id(node.value))
            todo += [(path, None, item) for item in reversed(node.items)]
            for key, below in reversed(node.entries.items()):
                todo.append((f"{path}.{key}" if path else key, below, below.node))


class KeyValue(NamedTuple):
    """A key and its value."""

    key: str
    key_span: Span
    """Without quotes."""
    node: Node


def number(node: Node | None) -> int | float | None:
    """The number that a value is; None if it is something else or not known."""
    value = node.value if node else None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
