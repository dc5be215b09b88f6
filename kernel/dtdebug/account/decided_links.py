"""The links of a way back, and which of them decided the value that was refused."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

import msgspec

from dtdebug_taxonomy.model.account import MAX_LINKS, Link, NamedValue
from dtdebug_taxonomy.text.value_texts import read_value

DECIDED, COMPUTED, MADE = 0, 1, 2
"""Certainty that a value was decided at a link: by what stands there; by an expression over what the launch gives; by a
call that makes an object of literals."""
LAUNCH = 3
"""A link that only asks for what the launch gives: the one before it decides."""
_TENSOR = re.compile(r"[A-Z]\w{0,60}\[")
_FIGURE = re.compile(r"-?\d[\d.e+-]{0,30}")
_SIZES = re.compile(r"(?i)(?<![\w.])\d|size|shape|dim|length|number|count|range|index|batch|empty|split")
_NOT = re.compile(r"\b(?:must be|expected) [\w .|,]{1,60}?,? (?:not|but got|got|found) (?P<kind>[A-Za-z]\w{0,60})\b")
"""Message that refuses a value for its type."""
_OPTION = re.compile(r"['\"](--?[\w-]{1,40})['\"]")
_TOKEN = re.compile(r"\d{1,12}|'[^']{1,80}'|None")


class DecidedLinks:
    """Links in the order in which they are told, each with the one that led to it.

    `message`: text of the exception.
    """

    def __init__(self, message: str = "") -> None:
        self.links: list[Link] = []
        self._lacks = "object has no attribute" in message
        """True if the kind of an object is refused, which the branch that made it explains."""
        self._spoken = frozenset(_TOKEN.findall(message.replace("NoneType", "None")))
        refused = _NOT.search(message)
        self._refused = refused["kind"] if refused is not None else ""
        """Type that is refused, as the message names it."""
        self._of_sizes = _SIZES.search(message) is not None
        self._parents: list[int] = []
        self._plain: list[bool] = []
        """True for a link that only hands a value on."""
        self._handed: list[str] = []
        """Expression that a link hands on unchanged, if it does."""
        self._scalar: list[bool] = []
        self._sums: set[int] = set()
        """Indices of links that compute a number of others."""
        self._ends: list[tuple[int, int]] = []
        """(Index of a link at which a value was decided, certainty)."""
        self._own: list[int] = []
        """Indices of links that ask for what each rank has of its own."""
        self._most = MAX_LINKS
        """Number of links up to which the part that is followed may go."""

    @property
    def root(self) -> int:
        """Index of the link at which the refused value was decided, or -1; of several, one that the message names."""
        if (of_kind := self._last_of_kind()) >= 0:
            return of_kind
        ends = [(self._decider(n) if sure == LAUNCH else n, min(sure, MADE)) for n, sure in self._ends]
        by_launch = {self._decider(n) for n, sure in self._ends if sure == LAUNCH}
        ends = [(n, sure) for n, sure in ends if not self._is_beside(n)]
        ends = [(n, COMPUTED if sure == MADE and (self._scalar[n] or n in by_launch) else sure) for n, sure in ends]
        if not ends:
            return -1
        given = {n for n, _ in ends if _is_given(self.links[n])}  # what was typed for this run comes before a default
        n, sure = min(ends, key=lambda end: (end[1], -self._name_link(end[0]), end[0] not in given, end[0]))
        if not self._name_link(n) and n not in given and (combined := self._sum_of(n, [end for end, _ in ends])) >= 0:
            return combined
        if sure == MADE and self._scalar[0]:
            return 0  # the parts are objects, but a number was refused
        return n

    def _last_of_kind(self) -> int:
        """Return the last link of a way back on which a value still has the type that is refused, or -1."""
        found = -1
        for n, link in enumerate(self.links if self._refused else ()):
            value = read_value(link.value.text)
            if value is not None and value.name == self._refused and (found >= 0 or link.depth == 0):
                found = n
            elif found >= 0 and link.depth == 0:
                break
        return found

    def _is_beside(self, n: int) -> bool:
        """True for a number that only gives an object its size, where the message speaks of no number."""
        tensors = (link.depth == 0 and _TENSOR.match(link.value.text) for link in self.links)
        return self._depth(n) > 1 and _FIGURE.fullmatch(self.links[n].value.text) is not None and (
            self._lacks or (not self._of_sizes and any(tensors))
        )  # fmt: skip

    @property
    def by_rank(self) -> int:
        """Index of the first link at which what each rank has of its own comes into a value, or -1."""
        for asked in sorted(self._own):
            at = asked
            while at >= 0 and self._plain[at]:
                at = self._parents[at]
            if at >= 0:
                return at
        return -1

    def told(self) -> tuple[Link, ...]:
        """Return the links; one that only hands a value on has that of the next, and the next has its value."""
        links = list(self.links)
        for n, link in enumerate(links):
            up = self._parents[n]
            if up >= 0 and self._handed[up] == link.value.name and not link.value.text:
                links[n] = msgspec.structs.replace(link, value=NamedValue(link.value.name, links[up].value.text))
        for n in range(len(links) - 1, 0, -1):
            up = self._parents[n]
            if up >= 0 and self._plain[up] and not links[up].value.text and links[n].value.text:
                value = NamedValue(links[up].value.name, links[n].value.text)
                links[up] = msgspec.structs.replace(links[up], value=value)
        return tuple(links)

    def _decider(self, n: int) -> int:
        """Return the nearest link before one that did more than hand a value on, or the first of the chain."""
        while self._parents[n] >= 0:
            n = self._parents[n]
            if not self._plain[n]:
                break
        return n

    def _name_link(self, n: int) -> int:
        """Return how many numbers and names of the message occur in a link's value.

        Not those of a number that was computed of it: that a part of it is equal is chance.
        """
        spoken = self._spoken & frozenset(_TOKEN.findall(self.links[n].value.text))
        at = self._parents[n]
        while at >= 0 and spoken:
            spoken -= frozenset((self._text(at),)) if at in self._sums else frozenset()
            at = self._parents[at]
        return len(spoken)

    def _text(self, n: int) -> str:
        """Return the value of a link, or of the one that it was only handed on to."""
        while n > 0 and not self.links[n].value.text and self._parents[n] >= 0 and self._plain[self._parents[n]]:
            n = self._parents[n]
        return self.links[n].value.text

    def _is_number(self, n: int) -> bool:
        return _FIGURE.fullmatch(self._text(n)) is not None

    def _sum_of(self, n: int, ends: Sequence[int]) -> int:
        """Return the nearest link before one that computes a number of several things which are decided, or -1."""
        at = self._parents[n]
        while at >= 0:
            below = [end for end in ends if end == n or at in self._before(end)]
            if at in self._sums and len({self.links[end].value.name for end in below}) > 1:
                return at
            at = self._parents[at]
        return -1

    def _before(self, n: int) -> list[int]:
        found = []
        while (n := self._parents[n]) >= 0:
            found.append(n)
        return found

    def _depth(self, parent: int) -> int:
        return 0 if parent < 0 else self.links[parent].depth + 1

    def _add(
        self,
        link: Link,
        parent: int,
        *,
        plain: bool = False,
        handed: str = "",
        scalar: bool = False,
        sure: int | None = None,
    ) -> int:
        """Add a link, and return its index; that of the one before if it is told already."""
        for n, each in enumerate(self.links):
            if (each.place, each.value.name) == (link.place, link.value.name):
                return n
        if len(self.links) >= self._most:
            return parent
        if sure is not None:
            self._ends.append((len(self.links), sure))
        self.links.append(link)
        self._parents.append(parent)
        self._plain.append(plain)
        self._handed.append(handed)
        self._scalar.append(scalar)
        return len(self.links) - 1


def _is_given(link: Link) -> bool:
    """True for an option that stands on the command line of this process."""
    words = _OPTION.findall(link.place.code) if link.how == "option" else ()
    return any(each.partition("=")[0] in words for each in sys.argv[1:] if each.startswith("-"))
