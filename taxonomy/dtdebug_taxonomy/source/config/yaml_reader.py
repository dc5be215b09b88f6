"""Reads YAML with the place of every key and value; nothing in it is run, and aliases are never expanded."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress

import yaml
from yaml.nodes import MappingNode, ScalarNode, SequenceNode

from dtdebug_taxonomy.source.config.tree import UNKNOWN, KeyValue, Node
from dtdebug_taxonomy.source.text import Span, Text

_LONGEST = 100_000
"""Maximum number of characters of a configuration; a longer text is data, and PyYAML is slow."""
_DEEPEST = 40
_MOST = 100_000
"""Maximum number of values with aliases expanded: each reader of the tree visits all of them."""
_OPEN = re.compile(r"\$\{|\{\{|^\$\w+$")
_INT = re.compile(r"[-+]?\d[\d_]*$")


def read_yaml(text: Text) -> tuple[list[Node], tuple[str, int] | None]:
    """Return the readable documents, and the first fault with its offset."""
    if len(text) > _LONGEST:
        return [], (f"it has more than {_LONGEST:,} characters", 0)
    documents: list[Node] = []
    try:
        for node in _compose_documents(text):
            documents += [_Converter(text).node(node, _DEEPEST)] if node is not None else []
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        return documents, (error.problem or "is not valid YAML", min(mark.index, len(text)) if mark else 0)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        return documents, (str(error).split("\n", 1)[0] or "is not valid YAML", 0)
    return documents, None


def _compose_documents(text: Text) -> Iterator[yaml.Node | None]:
    """Return the documents, by libyaml if available, in a tenth of the time; faults are reported by PyYAML itself."""
    if yaml.__with_libyaml__ and not text.startswith("\ufeff"):  # libyaml does not count it
        with suppress(yaml.YAMLError, ValueError, RecursionError):
            return iter([*yaml.compose_all(str(text), Loader=yaml.CSafeLoader)])
    return yaml.compose_all(text, Loader=yaml.SafeLoader)


class _Converter:
    """Converts PyYAML's nodes; each is converted once, regardless of the number of aliases."""

    def __init__(self, text: Text) -> None:
        self.text = text
        self.done: dict[int, Node] = {}
        self.sizes: dict[int, int] = {}
        """Node -> number of values that it represents, counting each alias."""

    def node(self, node: yaml.Node, depth: int) -> Node:
        made = self.done.get(id(node))
        if made is None:
            span = Span(node.start_mark.index, min(node.end_mark.index, len(self.text)))
            self.done[id(node)] = Node(span, UNKNOWN, span)  # an alias to its own parent ends here
            made = self.done[id(node)] = self._make_node(node, span, depth)
            below = [*(entry.node for entry in made.entries.values()), *made.items]
            size = self.sizes[id(made)] = 1 + sum(self.sizes.get(id(one), 1) for one in below)
            if size > _MOST:
                raise ValueError(f"its aliases stand for more than {_MOST:,} values")
        return made

    def _make_node(self, node: yaml.Node, span: Span, depth: int) -> Node:
        if isinstance(node, MappingNode):
            entries: dict[str, KeyValue] = {}
            for key, value in node.value if depth else ():
                if not isinstance(key, ScalarNode):
                    continue
                inner = self._scalar(key)[1]
                if key.tag.endswith(":merge"):
                    merged = self.node(value, depth - 1)
                    for source in (merged, *merged.items):
                        entries = {**source.entries, **entries}
                    continue
                entries[key.value] = KeyValue(key.value, inner, self.node(value, depth - 1))
            return Node(span, entries, span)
        if isinstance(node, SequenceNode):
            return Node(span, [self.node(item, depth - 1) for item in node.value] if depth else [], span)
        if not isinstance(node, ScalarNode):
            return Node(span, UNKNOWN, span)
        value, inner = self._scalar(node)
        return Node(span, value, inner)

    def _scalar(self, node: ScalarNode) -> tuple[object, Span]:
        span = Span(node.start_mark.index, min(node.end_mark.index, len(self.text)))
        if node.style in {"'", '"'}:
            span = Span(span.start + 1, max(span.end - 1, span.start + 1))
            return (UNKNOWN if _OPEN.search(node.value) else node.value), span
        if node.style in {"|", ">"}:
            return node.value, span
        return _plain(node.tag, node.value), span


def _plain(tag: str, value: str) -> object:
    kind = tag.rpartition(":")[2]
    if _OPEN.search(value):
        return UNKNOWN
    if kind == "bool":
        return value.lower() in {"true", "yes", "on"}
    if kind == "int" and _INT.match(value):
        return int(value.replace("_", ""))
    if kind in {"int", "float"} or re.match(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+$", value):
        try:
            return float(value.replace("_", ""))
        except ValueError:
            return value
    return None if kind == "null" else value
