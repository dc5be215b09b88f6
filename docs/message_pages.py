"""A page for each message that dtdebug knows, under the message's own words, for who searches for them.

The words are a line of our samples that the message's pattern finds, else the pattern itself where it is plain text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.knowledge.schema import Cause, Evidence, Symptom
from dtdebug_taxonomy.text.pattern_matcher import Matcher, PatternHit, index_of

KNOWN = load()
SAMPLES = Path(__file__).parent.parent / "tests" / "samples"
WIDTH = 110
_CASED = "(?-i:"
"""What browsers of some years ago can't read."""
_REGEX = re.compile(r"(?<!\\)[\[\](){}|*+?^$]|(?<!\\)\\[a-zA-Z]")
_PREFIX = re.compile(r"^(?:\[\d+,\d+\]<\w+>:|\[[^\]]{1,30}\]:? ?|\w*Rank \d+:? ?|\s)+")


@cache
def titles() -> dict[str, str]:
    """Id of a message -> how it is printed; those whose words are not known are left out."""
    files = [file for file in sorted(SAMPLES.rglob("*.txt")) if ".said." not in file.name]
    lines = "\n".join(file.read_text(encoding="utf-8", errors="replace") for file in files) + "\n"
    messages = [e for e in KNOWN.evidence.values() if e.text and (e.symptoms or e.role == "cascade" or any(_causes(e)))]
    finder = Matcher(index_of((f"{i:02} {e.id}", pattern) for e in messages for i, pattern in enumerate(e.text)))
    hits = {hit.key.partition(" ")[2]: hit for hit in sorted(finder.hits(lines), key=lambda hit: hit.key, reverse=True)}
    found = {e.id: _around(lines, hits[e.id]) if e.id in hits else _plain(e) for e in messages}
    return {name: title for name, title in found.items() if title}


def pages() -> dict[str, str]:
    """Name on the site -> Markdown."""
    made = {
        f"messages/{name}": "---\norphan: true\n---\n" + _joined(message(KNOWN.evidence[name])) for name in titles()
    }
    return {"messages": _joined(index()), **made}


def searched() -> list[dict[str, Any]]:
    """What the site's search tries on what is looked for, which is often a line that somebody's own run printed."""
    return [
        {
            "id": name,
            "title": title,
            "vague": int(e.generic or e.catch_all or e.role != "root"),
            "patterns": [text.replace("(?P<", "(?<") for text in e.text if _CASED not in text],
        }
        for name, title in titles().items()
        for e in [KNOWN.evidence[name]]
    ]


def _joined(lines: Iterator[str]) -> str:
    return "\n\n".join(filter(None, lines)) + "\n"


def message(e: Evidence) -> Iterator[str]:
    """The page of one message."""
    yield f"# {_prose(titles()[e.id])}"
    yield _prose(e.means)
    file = next((f for f in KNOWN.messages.values() if any(other.id == e.id for other in f.evidence)), None)
    yield f"Printed by: {_prose(file.framework)}." if file else ""
    rows = [(s, e.symptoms[s.code]) for s in KNOWN.symptoms.values() if s.code in e.symptoms]
    yield "## What it is a sign of" if rows else ""
    yield "\n".join(f"- {word}: [{s.code} {_prose(s.title)}](../symptoms/{s.code}.md)" for s, word in rows)
    is_echo = e.role == "cascade" and not rows
    if is_echo:
        yield (
            "It reports that another process had failed before. Why is in that process's own output, maybe far above "
            "or in another file: `dtdebug triage FOLDER` finds the rank that failed first among the logs of a job."
        )
    own = [cure for cure in e.cure if "(?P<" not in cure.when]  # else a run's own words belong in it
    yield "## What the message itself says" if own else ""
    yield "\n".join(f"- {_prose(c.title)}: {_prose(c.fix)}" for c in own)
    causes = [] if is_echo else list(_causes(e))  # those of what had failed before
    yield "## Causes with their fixes" if causes else ""
    yield "\n".join(f"- [{_prose(c.title)}](../causes/{s.code}/{c.id}.md): {_prose(c.fix)}" for s, c in causes)
    yield "## What your own run says"
    yield (
        "`dtdebug diagnose LOG` reads the whole output: which rank printed it first, what came before, and which "
        "cause something points at."
    )
    yield f"Source of the message: {_source(e.cite)}" if e.cite else ""


def index() -> Iterator[str]:
    """All messages by who prints them."""
    yield "# Messages"
    yield "What frameworks and libraries print when distributed training fails, and what it means."
    for file in KNOWN.messages.values():
        rows = [f"- [{_prose(titles()[e.id])}](messages/{e.id}.md)" for e in file.evidence if e.id in titles()]
        if rows:
            yield f"## {_prose(file.framework)}"
            yield "\n".join(rows)


def _causes(e: Evidence) -> Iterator[tuple[Symptom, Cause]]:
    for s in KNOWN.symptoms.values():
        yield from ((s, c) for c in s.cause if e.id in c.evidence or c.id in e.names)


def _plain(e: Evidence) -> str:
    """The first pattern that is plain text."""
    plain = next((text for text in e.text if not _REGEX.search(text)), "")
    return re.sub(r"n\.t\b", "n't", re.sub(r"\\(.)", r"\1", plain)).strip()


def _around(lines: str, hit: PatternHit) -> str:
    """The line without its prefixes; of a long one the part that was found, whole words."""
    begin, end = lines.rfind("\n", 0, hit.start) + 1, lines.find("\n", hit.start)
    text = _PREFIX.sub("", lines[begin:end]).strip()
    if len(text) <= WIDTH:
        return text
    cut = lines[lines.rfind(" ", begin, hit.start + 1) + 1 if " " in lines[begin : hit.start + 1] else begin : end]
    return cut if len(cut) <= WIDTH else cut[: min(max(len(hit.words), cut.rfind(" ", 0, WIDTH)), 160)].strip()


def _prose(text: str) -> str:
    """As Markdown shows it, letter by letter."""
    return re.sub(r"([\\`*_{}\[\]<>#|$~])", r"\\\1", text)


def _source(cite: str) -> str:
    return f"<{cite}>" if cite.startswith("http") else _prose(cite)
