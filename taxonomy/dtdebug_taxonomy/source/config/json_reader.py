"""Reads JSON as people write it: comments, trailing commas, templates with placeholders, half-typed text."""

from __future__ import annotations

import json
import re

from dtdebug_taxonomy.source.config.tree import UNKNOWN, KeyValue, Node
from dtdebug_taxonomy.source.text import Span

_TOKEN = re.compile(
    r"(?P<skip>\s+|//[^\r\n]*|/\*.*?(?:\*/|\Z)|#[^\r\n]*|\{%.*?%\})"
    r"|(?P<template>\{\{[^{}]*\}\}|\$\{[^}\r\n]*\}|<[\w -]+>)"
    r"|(?P<text>\"(?:[^\"\\\r\n]|\\.)*\"?|'(?:[^'\\\r\n]|\\.)*'?)"
    r"|(?P<mark>[{}\[\]:,])"
    r"|(?P<word>[^\s{}\[\]:,\"'#]+)",
    re.DOTALL,
)
_WORDS: dict[str, object] = {"true": True, "false": False, "null": None, "NaN": float("nan"), "Infinity": float("inf")}
_DEEPEST = 60


class JsonReader:
    """Reader of one value; the first fault is in `problem`, and the rest is still read."""

    def __init__(self, text: str, span: Span | None = None) -> None:
        self.text = text
        self.at, self.end = span or Span(0, len(text))
        self.problem: tuple[str, int] | None = None
        """First fault, and its offset."""
        self._kind, self._token = "", Span(self.at, self.at)
        self._next()

    def read(self) -> Node | None:
        """Read the value; None if there is none."""
        if not self._kind:
            return None
        node = self._value(_DEEPEST)
        if self._kind:
            self._fault("something follows the value")
        return node

    def _fault(self, what: str) -> None:
        self.problem = self.problem or (what, self._token.start)

    def _next(self) -> None:
        while self.at < self.end:
            found = _TOKEN.match(self.text, self.at, self.end)
            if found is None:  # no token begins like this: a lone quote within a word
                self.at += 1
                continue
            self.at = found.end()
            kind = found.lastgroup or ""
            if kind != "skip":
                self._kind, self._token = (found[0] if kind == "mark" else kind), Span(*found.span())
                return
        self._kind, self._token = "", Span(self.end, self.end)

    def _value(self, depth: int) -> Node:
        span = self._token
        if self._kind in {"{", "["}:
            if depth:
                return self._mapping(depth) if self._kind == "{" else self._list(depth)
            self._fault("nested too deep")
            self.at = self.end
            self._next()
            return Node(span, UNKNOWN, span)
        if self._kind in {"", "}", "]", ",", ":"}:
            self._fault("a value is missing")
            return Node(Span(span.start, span.start), UNKNOWN, Span(span.start, span.start))
        value, inner = self._scalar()
        self._next()
        while self._kind in {"template", "word"} and self._token.start == span.end:  # `1e${X}`
            span, value = Span(span.start, self._token.end), UNKNOWN
            self._next()
        return Node(span, value, span if value is UNKNOWN else inner)

    def _scalar(self) -> tuple[object, Span]:
        span, text = self._token, self.text[self._token.start : self._token.end]
        if self._kind == "text":
            closed = len(text) > 1 and text[-1] == text[0]
            if not closed:
                self._fault("a text has no end")
            inner = Span(span.start + 1, span.end - 1 if closed else span.end)
            body = self.text[inner.start : inner.end]
            if re.search(r"\$\{|\{\{|^\$\w+$", body):
                return UNKNOWN, inner
            if "\\" in body and closed and text[0] == '"':
                try:
                    return json.loads(text, strict=False), inner
                except ValueError:
                    return body, inner
            return body, inner
        if text in _WORDS:
            return _WORDS[text], span
        return _as_number(text), span

    def _mapping(self, depth: int) -> Node:
        start, entries = self._token.start, dict[str, KeyValue]()
        self._next()
        while self._kind and self._kind not in {"}", "]"}:
            if self._kind == ",":
                self._next()
                continue
            if self._kind not in {"text", "word"}:
                if self._kind != "template":  # a template may represent whole entries
                    self._fault("a key is missing")
                self._skip(depth)
                continue
            _, key_span = self._scalar() if self._kind == "text" else (None, self._token)
            key = self.text[key_span.start : key_span.end]
            self._next()
            if self._kind != ":":
                self._fault("':' is missing after a key")
                continue
            self._next()
            entries[key] = KeyValue(key, key_span, self._value(depth - 1))
            if self._kind in {"text", "word"}:
                self._fault("',' is missing")
        return self._close_node(start, "}", entries)

    def _skip(self, depth: int) -> None:
        if self._kind in {"{", "["}:
            self._value(depth - 1)
        else:
            self._next()

    def _list(self, depth: int) -> Node:
        start, items = self._token.start, list[Node]()
        self._next()
        while self._kind and self._kind not in {"]", "}"}:
            if self._kind in {",", ":"}:
                if self._kind == ":":
                    self._fault("':' in a list")
                self._next()
                continue
            items.append(self._value(depth - 1))
        return self._close_node(start, "]", items)

    def _close_node(self, start: int, mark: str, value: object) -> Node:
        end = self._token.end
        if self._kind == mark:
            self._next()
        else:
            self._fault(f"{mark!r} is missing")
            end = self._token.start
        return Node(Span(start, end), value, Span(start, end))


def _as_number(text: str) -> object:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return UNKNOWN
