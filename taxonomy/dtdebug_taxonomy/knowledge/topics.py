"""Topics: short guides to the most frequent questions on distributed training, one Markdown file each."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from dtdebug_taxonomy.knowledge.loader import STUDY, KnowledgeError
from dtdebug_taxonomy.knowledge.schema import KnowledgeRecord, Reference

TOPICS = Path(__file__).parents[1] / "topics"
QUESTIONS = 494
"""Number of how-to questions that the study has classified."""
LAST = "others"
"""Name of the group that is always last, regardless of its number of questions."""
TITLES = {"communication": "How do the ranks exchange data, and what can be chosen?"}
"""Titles of groups of several topics; a group of one topic has that topic's title."""
_MARK = "+++"
_PYTHON = re.compile(r"^```python\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
_RUN = re.compile(r"\A# (?P<command>(?:[A-Z_]+=\S+ )*(?:torchrun|python) .+)\n")


class UnknownTopicError(KeyError):
    """Unknown topic; the message suggests similar names."""

    def __str__(self) -> str:
        return str(self.args[0])


class Snippet(NamedTuple):
    """Program that a guide shows."""

    file: str
    """Name of the file in its command; empty if the program does not state how to run it."""
    command: tuple[str, ...]
    """Command as a user types it, variables first: the program's first line."""
    code: str


class Topic(KnowledgeRecord, frozen=True, kw_only=True):
    """One guide: the front matter of `topics/NAME.md`, and its text."""

    title: str
    """The question behind the questions."""
    gist: str
    """Subject, in one sentence."""
    group: str = ""
    """Group of the study; defaults to a group of its own name."""
    also: tuple[str, ...] = ()
    """Other names under which it is found."""
    counts: dict[str, dict[str, int]]
    """Study -> its names for the questions, and their numbers."""
    symptoms: tuple[str, ...]
    """Codes of the symptoms of mistakes, the most usual first."""
    checks: tuple[str, ...] = ()
    labs: tuple[str, ...] = ()
    reference: tuple[Reference, ...]
    name: str = ""
    """Name of the file; set by the loader."""
    body: str = ""
    """The text: Markdown without a title; set by the loader."""

    @property
    def question_count(self) -> int:
        """Number of questions in the first study."""
        return sum(self.counts[STUDY].values())

    @property
    def snippets(self) -> tuple[Snippet, ...]:
        """All Python programs that it shows."""
        return tuple(_snippet(found["code"]) for found in _PYTHON.finditer(self.body))


class TopicGroup(NamedTuple):
    """Topics that the study counts together."""

    name: str
    title: str
    topics: tuple[Topic, ...]

    @property
    def question_count(self) -> int:
        """Number of questions in the first study."""
        return sum(topic.question_count for topic in self.topics)


def _snippet(code: str) -> Snippet:
    found = _RUN.match(code)
    command = tuple(shlex.split(found["command"])) if found else ()
    return Snippet(next((word for word in command if word.endswith(".py")), ""), command, code)


def _read(path: Path) -> Topic:
    text = path.read_text(encoding="utf-8")
    begin, _, rest = text.partition(f"{_MARK}\n")
    front, end, body = rest.partition(f"\n{_MARK}\n")
    if begin or not end:
        raise KnowledgeError(f"{path}: begins with TOML between two lines {_MARK}")
    try:
        topic = msgspec.toml.decode(front, type=Topic)
    except (msgspec.ValidationError, msgspec.DecodeError) as error:
        raise KnowledgeError(f"{path}: {error}") from error
    return msgspec.structs.replace(topic, name=path.stem, group=topic.group or path.stem, body=f"{body.strip()}\n")


@lru_cache(maxsize=2)
def load_topics(home: Path = TOPICS) -> dict[str, Topic]:
    """Return all topics by name.

    Raises:
        KnowledgeError: a file is broken; the text names file, place and what was expected.

    """
    return {path.stem: _read(path) for path in sorted(home.glob("*.md"))}


def groups() -> tuple[TopicGroup, ...]:
    """Return the groups, those with most questions first; likewise the topics in each."""
    topics = sorted(load_topics().values(), key=lambda topic: (-topic.question_count, topic.name))
    found = []
    for name in dict.fromkeys(topic.group for topic in topics):
        members = tuple(topic for topic in topics if topic.group == name)
        found.append(TopicGroup(name, TITLES.get(name, members[0].title), members))
    return tuple(sorted(found, key=lambda group: (group.name == LAST, -group.question_count)))


def names() -> Iterator[tuple[str, str]]:
    """Yield (name, usual name) for every name under which something is found."""
    for group in groups():
        if group.name not in load_topics():
            yield group.name, group.name
        for topic in group.topics:
            yield from ((name, topic.name) for name in (topic.name, *topic.also))


def find(name: str, more: tuple[str, ...] = ()) -> Topic | TopicGroup:
    """Return the topic, or group of topics, of a name: `backends`, `communication/backends`, `Device usage`.

    Raises:
        UnknownTopicError: no topic has the name; the message suggests similar ones, including `more` names.

    """
    group, slash, last = _plain(name).rpartition("/")
    usual = dict(names())
    topic = load_topics().get(usual.get(last, ""))
    if topic and (not slash or group == topic.group):
        return topic
    for one in groups():
        if last == one.name and not slash:
            return one
    near = get_close_matches(last, [*usual, *more], n=3)
    hint = f"near: {', '.join(dict.fromkeys(usual.get(word, word) for word in near))}" if near else ""
    raise UnknownTopicError(f"{name[:60]!r} is no topic; {hint or '`dtdebug learn` lists all'}")


def _plain(name: str) -> str:
    """Normalise the spelling of a name to that of the files."""
    return re.sub(r"[\s_-]+", "-", name.strip().lower()).replace("isation", "ization")
