"""Rules for topics."""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from dtdebug_taxonomy.checks import load as load_checks
from dtdebug_taxonomy.knowledge.labs import load_labs
from dtdebug_taxonomy.knowledge.loader import STUDY, Knowledge
from dtdebug_taxonomy.knowledge.topics import QUESTIONS, TOPICS, Snippet, Topic, load_topics, names

LINES = range(40, 91)
"""Length of a text in lines: a few minutes' reading."""
WIDTH, REFERENCES = 120, 2
"""Maximum characters of a line, minimum number of references."""
HEADINGS = ("## What is asked", "## In short", "## Try it", "## Usual mistakes")
"""Headings of every text, in this order."""
_CODE = re.compile(r"\b(?:DT\d{3}|[A-D](?:\.\d+){1,2})\b")


def topic_problems(knowledge: Knowledge) -> Iterator[str]:
    """Yield every broken rule, as `file: what to do`."""
    topics = load_topics().values()
    for topic in topics:
        yield from (f"topics/{topic.name}.md: {p}" for p in _topic(knowledge, topic))
    if (asked := sum(topic.question_count for topic in topics)) != QUESTIONS:
        yield f"topics: {asked} questions together; the study has {QUESTIONS}"
    files = (snippet.file for topic in topics for snippet in topic.snippets)
    yield from (f"topics: two programs are called {file}" for file in _twice(files))
    yield from (f"topics: {name} names two things" for name in _twice(name for name, _ in names()))
    yield from (f"topics/{file}: a text is called NAME.md" for file in _strangers(TOPICS))


def _strangers(home: Path) -> Iterator[str]:
    yield from sorted(path.name for path in home.iterdir() if not re.fullmatch(r"[a-z]+(-[a-z]+)*\.md", path.name))


def _twice(words: Iterator[str]) -> list[str]:
    return [word for word, times in Counter(words).items() if times > 1]


def _topic(knowledge: Knowledge, topic: Topic) -> Iterator[str]:
    if not topic.title.endswith("?") or not topic.gist.endswith("."):
        yield "title ends in '?', gist in '.'"
    if STUDY not in topic.counts:
        yield f"counts.{STUDY}: how often it is asked"
    yield from _links(knowledge, topic)
    yield from _text(topic.body)
    if not topic.snippets:
        yield "shows no program"
    for number, snippet in enumerate(topic.snippets, 1):
        yield from (f"{snippet.file or f'program {number}'}: {p}" for p in _snippet(snippet))


def _links(knowledge: Knowledge, topic: Topic) -> Iterator[str]:
    known = {"symptoms": set(knowledge.symptoms), "checks": set(load_checks()), "labs": set(load_labs())}
    for field, there in known.items():
        if unknown := set(getattr(topic, field)) - there:
            yield f"{field}: unknown {sorted(unknown)}"
    if not topic.symptoms:
        yield "symptoms: what is seen when it goes wrong"
    if unlisted := set(_CODE.findall(topic.body)) - {*topic.symptoms, *topic.checks}:
        yield f"names {sorted(unlisted)}, which are neither in `symptoms` nor in `checks`"
    if len(topic.reference) < REFERENCES:
        yield f"at least {REFERENCES} references"
    yield from (
        f"reference {r.url!r} is not an https address" for r in topic.reference if not r.url.startswith("https://")
    )


def _text(body: str) -> Iterator[str]:
    lines = body.splitlines()
    if len(lines) not in LINES:
        yield f"{len(lines)} lines; {LINES[0]} to {LINES[-1]} are good to read"
    yield from (f"longer than {WIDTH} characters: {line[:40]!r}" for line in lines if len(line) > WIDTH)
    if [line for line in lines if line.startswith("## ")] != list(HEADINGS):
        yield f"headings are {', '.join(HEADINGS)}"


def _snippet(snippet: Snippet) -> Iterator[str]:
    if not snippet.file:
        yield "its first line says how it is run: `# torchrun --standalone --nproc-per-node 2 NAME.py`"
    try:
        tree = ast.parse(snippet.code)
    except SyntaxError as error:
        yield f"line {error.lineno}: {error.msg}"
        return
    if not any(isinstance(node, ast.Assert) for node in ast.walk(tree)) or "print(" not in snippet.code:
        yield "asserts what it shows, and prints it"
    modules = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    modules |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    if foreign := {name.partition(".")[0] for name in modules} - {"torch"} - sys.stdlib_module_names:
        yield f"needs more than torch: {sorted(foreign)}"
