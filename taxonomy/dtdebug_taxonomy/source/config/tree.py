"""Value of a configuration with its place, in any language."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from dtdebug_taxonomy.source.text import Span


class Unknown:
    """Value that is filled in later: `${BATCH}`, `{{ lr }}`, `args.batch`."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = Unknown()


class Node(NamedTuple):
    """Value: a number, text, truth value or None; a mapping; a list; `UNKNOWN`."""

    span: Span
    value: object
    """The scalar; `dict[str, Entry]` for a mapping, `list[Node]` for a list."""
    inner: Span
    """Span of a text without its quotes."""

    @property
    def entries(self) -> dict[str, KeyValue]:
        """Entries of a mapping; empty for anything else."""
        return self.value if isinstance(self.value, dict) else {}

    @property
    def items(self) -> list[Node]:
        """Elements of a list; empty for anything else."""
        return self.value if isinstance(self.value, list) else []

    def get(self, path: str) -> Node | None:
        """Return the value at dotted keys, `zero_optimization.stage`, or None."""
        entry = self.entry(path)
        return entry.node if entry else None

    def entry(self, path: str) -> KeyValue | None:
        """Return the entry at dotted keys, or None."""
        node: Node | None = self
        entry: KeyValue | None = None
        for key in path.split("."):
            entry = node.entries.get(key) if node else None
            node = entry.node if entry else None
        return entry

    def walk(self) -> Iterator[tuple[str, KeyValue]]:
        """Yield all entries below, with their dotted keys; lists are traversed, nodes shared by aliases only once."""
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
    """Span without quotes."""
    node: Node


def number(node: Node | None) -> int | float | None:
    """Return the number that a value is; None if it is anything else or unknown."""
    value = node.value if node else None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
