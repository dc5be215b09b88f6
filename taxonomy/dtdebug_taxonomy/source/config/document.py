"""Configuration file: JSON or YAML, its keys with their places, and the variables and commands in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import Literal, NamedTuple

from dtdebug_taxonomy.source.config.json_reader import JsonReader
from dtdebug_taxonomy.source.config.tree import UNKNOWN, KeyValue, Node
from dtdebug_taxonomy.source.config.yaml_reader import read_yaml
from dtdebug_taxonomy.source.shell.commands import Command, Word
from dtdebug_taxonomy.source.shell.script import Holder, Script
from dtdebug_taxonomy.source.source import UnreadPart, Variable
from dtdebug_taxonomy.source.text import Span

_ENVIRONMENTS = re.compile(r"(container|remote|extra)?_?env(s|ironment)?(_?var(iable)?s)?|variables", re.IGNORECASE)
"""Keys below which environment variables are set."""
_COMMANDS = frozenset({"run", "setup", "script", "command", "commands", "cmd", "entrypoint", "args"})
"""Keys whose values are shell text."""
_KEYS_OF_INTEREST = re.compile(
    r"(?:^|[\s\"'{,-])(\w*env\w*|variables|run|setup|script|commands?|cmd|entrypoint|args)[\"']?\s*:",
    re.IGNORECASE,
)
"""Pre-check: a text without any of these keys sets no variables and runs no commands."""
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*")
_PAIR = re.compile(r"([A-Z_][A-Z0-9_]*)=(.*)", re.DOTALL)


class Unreadable(NamedTuple):
    """Reason why a file can't be read completely."""

    what: str
    span: Span


class Config(Holder):
    """Configuration in JSON or YAML."""

    kind = "config"

    def __init__(self, text: str, *, path: str = "", language: Literal["json", "yaml"] | None = None) -> None:
        super().__init__(text, path=path)
        if language is None:
            language = "yaml" if self.path.lower().endswith((".yaml", ".yml")) else "json"
        self.language = language

    @cached_property
    def _read(self) -> tuple[list[Node], tuple[str, int] | None]:
        if self.language == "yaml":
            return read_yaml(self.text)
        reader = JsonReader(self.text)
        node = reader.read()
        return ([node] if node else []), reader.problem

    @property
    def roots(self) -> list[Node]:
        """Documents in the file; JSON has one."""
        return self._read[0]

    @property
    def problem(self) -> Unreadable | None:
        """First fault of invalid JSON or YAML, and its place; comments and placeholders are allowed."""
        found = self._read[1]
        return Unreadable(found[0], Span(found[1], min(found[1] + 1, len(self.text)))) if found else None

    @property
    def unread(self) -> tuple[UnreadPart, ...]:
        """For YAML, the document with the fault and all after it; JSON is still read after a fault."""
        parts = self.script.unread if self._starts_something else ()
        found = self._read[1]
        if found is None or self.language == "json":
            return parts
        start = max((root.span.end for root in self.roots), default=0)
        why = f"it is not valid YAML ({found[0]})" if found[1] else found[0]
        return (*parts, UnreadPart(Span(start, len(self.text)), why))

    @cached_property
    def entries(self) -> tuple[tuple[str, KeyValue], ...]:
        """All entries with their dotted keys; lists are traversed."""
        return tuple(row for root in self.roots for row in root.walk())

    @cached_property
    def _starts_something(self) -> bool:
        return _KEYS_OF_INTEREST.search(self.text) is not None

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """Variables set below `env:` and similar keys, and in commands."""
        if not self._starts_something:
            return ()
        found = {v.span: v for v in self.script.variables}
        for path, entry in self.entries:
            if _ENVIRONMENTS.fullmatch(path.rpartition(".")[2]):
                found |= {v.span: v for v in _environment(entry.node)}
        return tuple(sorted(found.values(), key=lambda v: v.span))

    @cached_property
    def script(self) -> Script:
        """Shell text below `run:` and similar keys."""
        pieces: set[Span] = set()
        lists: dict[Span, Command] = {}
        for path, entry in self.entries if self._starts_something else ():
            if path.rpartition(".")[2] in _COMMANDS:
                if (command := list_command(entry.node)) is not None:
                    lists[command.span] = command
                    continue
                for node in (entry.node, *entry.node.items):
                    if isinstance(node.value, str) and (span := self._shell(node)):
                        pieces.add(span)
        return Script(self.text, path=self.path, pieces=tuple(sorted(pieces)), more=tuple(lists.values()))

    def _shell(self, node: Node) -> Span | None:
        if self.text[node.span.start : node.span.start + 1] in {"|", ">"}:
            line = self.text.place(node.span.start).line
            start = self.text.end_of_line(line)
            return Span(start, node.span.end) if start < node.span.end else None
        body = self.cut(node.inner)
        return node.inner if body == node.value and " " in body else None


def list_command(node: Node) -> Command | None:
    """Return `["torchrun", "train.py"]` as a command; None for a list of whole lines of shell text."""
    items = node.items
    if len(items) < 2 or not all(isinstance(i.value, str | int | float) for i in items) or " " in str(items[0].value):
        return None
    words = tuple(Word(i.inner, str(i.value), i.inner) for i in items)
    return Command(node.span, (), words, is_list=True)


def _environment(node: Node) -> Iterator[Variable]:
    """Yield the variables of `{A: 1}`, `[{name: A, value: 1}]`, `["A=1"]`."""
    for key, entry in node.entries.items():
        if _VARIABLE.fullmatch(key):
            yield _variable(key, entry.key_span, entry.node)
    for item in node.items:
        name = item.get("name")
        if name is not None and isinstance(name.value, str):
            yield _variable(name.value, name.inner, item.get("value") or Node(name.span, UNKNOWN, name.inner))
        elif isinstance(item.value, str) and (pair := _PAIR.fullmatch(item.value)):
            start = item.inner.start
            middle = start + len(pair[1])
            yield Variable(pair[1], Span(start, middle), pair[2], Span(middle + 1, item.inner.end))


def _variable(name: str, span: Span, node: Node) -> Variable:
    if isinstance(node.value, bool):
        return Variable(name, span, str(node.value).lower(), node.inner)
    if isinstance(node.value, str | int | float):
        return Variable(name, span, str(node.value), node.inner)
    return Variable(name, span)
