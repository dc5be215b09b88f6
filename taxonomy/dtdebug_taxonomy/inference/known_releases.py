"""Releases that are named or measured, and those known to fail with this output or description."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple

from dtdebug_taxonomy.knowledge.loader import Knowledge
from dtdebug_taxonomy.knowledge.schema import Release
from dtdebug_taxonomy.model.snapshot import Snapshot, walk
from dtdebug_taxonomy.text.clauses import hits_in_words
from dtdebug_taxonomy.text.lazy_re import lazy_re
from dtdebug_taxonomy.text.matchers import matchers_from
from dtdebug_taxonomy.text.pattern_matcher import Index, Matcher, PatternHit, clip_lines, index_of

if TYPE_CHECKING:
    from packaging.version import Version

NAMES = {
    "accelerate": "accelerate",
    "aws-ofi-nccl": r"aws[-_]ofi[-_]nccl",
    "cann": "cann",
    "deepspeed": "deepspeed",
    "efa-installer": "efa[ _-]installer",
    "flash-attn": "flash[-_](?:attn|attention)",
    "lightning": "(?:pytorch[-_ ])?lightning",
    "megatron-bridge": "megatron[-_ ]bridge",
    "megatron-core": "megatron[-_ ](?:core|lm)",
    "mosaicml-streaming": r"mosaicml[-_ ]streaming",
    "ms-swift": "ms[-_]swift",
    "nccl": r"(?:nvidia[-_])?nccl(?:[-_]cu\d\d)?",
    "numpy": "numpy",
    "nvidia-cublas": r"nvidia[-_]cublas(?:[-_]cu\d\d)?",
    "ray": "ray",
    "rocm": "rocm",
    "torch": "(?:py)?torch",
    "torch-npu": "torch[-_]npu",
    "transformer-engine": "transformer[-_ ]?engine",
    "transformers": "transformers",
    "trl": "trl",
    "verl": "verl",
    "vllm": "vllm",
}
"""Package -> how texts call it."""
_PER_TEXT = 64
"""Releases that are read of each package."""
_OF = lazy_re(
    rf"(?i)(?<![\w./-])(?P<name>{'|'.join(f'(?P<n{i}>{name})' for i, name in enumerate(NAMES.values()))})"
    r"(?:[ _-](?:version|info|release))?['\"]?[ \t=:.v|(-]{1,40}(?:version |is |of |from )?v?"
    r"(?P<release>\d{1,3}(?:\.\d{1,4}){1,3}(?:[.-]?(?:rc|dev|a|b|alpha|beta)\.?\d{1,8}(?![\w.]))?)"
    r"(?P<also>(?: ?(?:to|->|→|or) ?v?\d{1,3}(?:\.\d{1,4}){1,3}){0,2})"
)
"""A name with its release, and those that a sentence adds: "trl from 0.13.0 to 0.14.0 or 0.15.0"."""
_RELEASE = lazy_re(r"\d{1,3}(?:\.\d{1,4}){1,3}")
_BOUND = lazy_re(r"(>=|<=|==|<|>) ?(\d{1,4}(?:\.\d{1,4}){0,3})\Z")
_HOLDS = {"<": operator.lt, "<=": operator.le, "==": operator.eq, ">=": operator.ge, ">": operator.gt}


class Named(NamedTuple):
    """A release that is named or was measured."""

    release: str
    source: Literal["measured", "printed", "said", "exception"]
    line: int
    words: str


class FittingRelease(NamedTuple):
    """A fact that fits."""

    fact: Release
    seen: tuple[PatternHit, str]
    """The message, and its source."""
    named: Named | None
    """The release that it is about; None where only the message speaks for it."""


def is_in_range(release: str, bounds: str) -> bool:
    """True if a release lies in a range such as `>=2.19,<2.26.2`; an empty range holds all.

    Versions are ordered as PEP 440 orders them, so a nightly or a release candidate comes before its release and
    `<2.3.0` holds for `2.3.0.dev20240315`. (`SpecifierSet` would say no: it is meant for choosing what to install.)
    A build such as `+cu118` makes no difference.

    Raises:
        ValueError: not a valid range.

    """
    at = _version(release)
    for bound in filter(None, (b.strip() for b in bounds.split(","))):
        match = _BOUND.match(bound)
        if match is None:
            raise ValueError(f"not a range of releases: {bound!r}")
        if not _HOLDS[match[1]](at, _version(match[2])):
            return False
    return True


def _version(release: str) -> Version:
    """The version without its local part; of a text that is no version, its leading numbers."""
    from packaging.version import InvalidVersion, Version

    public = release.partition("+")[0].strip()
    try:
        return Version(public)
    except InvalidVersion:
        numbers = re.match(r"v?(\d{1,9}(?:\.\d{1,9}){0,3})", public)
        return Version(numbers[1] if numbers else "0")


def releases_in(snapshot: Snapshot) -> dict[str, list[Named]]:
    """The releases that were measured, else those that texts name."""
    found: dict[str, list[Named]] = {}
    for source, text in _texts(snapshot):
        for number, line in enumerate(text.split("\n"), 1):
            for match in _OF.finditer(line):
                group = next(g for g in match.groupdict() if g.startswith("n") and g[1:].isdigit() and match[g])
                rows = found.setdefault(list(NAMES)[int(group[1:])], [])
                true = snapshot.true_line(number) if source == "printed" else number
                for release in (match["release"], *(m[0] for m in _RELEASE.finditer(match["also"]))):
                    if len(rows) < _PER_TEXT:
                        rows.append(Named(release, source, true, match[0]))
    for package, release in snapshot.versions.items():
        if package in NAMES:
            found[package] = [Named(release, "measured", 0, f"{package} {release}")]
    return found


def _texts(snapshot: Snapshot) -> Iterator[tuple[Literal["printed", "said", "exception"], str]]:
    yield "printed", clip_lines(snapshot.output)
    yield "said", clip_lines(snapshot.situation)
    yield "exception", "\n".join(f"{i.type}: {i.message}" for i in walk(snapshot.exception))


def fitting_releases(knowledge: Knowledge, snapshot: Snapshot) -> tuple[FittingRelease, ...]:
    """Return the facts that fit: first those that need only their message, then those whose release is named."""
    if not knowledge.releases:
        return ()
    printed, spoken, places = matchers(knowledge)
    seen: dict[str, tuple[PatternHit, str]] = {}
    somewhere: set[str] = set()
    for source, text in _texts(snapshot):
        for hit in printed.hits(text):
            line = snapshot.true_line(hit.line) if source == "printed" else hit.line
            seen.setdefault(hit.key, (hit._replace(line=line), source))
        somewhere.update(hit.key for hit in places.hits(text))
    for hit in hits_in_words(spoken, snapshot.situation):
        seen.setdefault(hit.key, (hit, "said"))
    if not seen:
        return ()
    releases = releases_in(snapshot)
    fits = (f for f in knowledge.releases if f.id in seen and (not f.where or f.id in somewhere))
    found = [row for f in fits if (row := _fitting(f, seen[f.id], releases))]
    return tuple(sorted(found, key=lambda row: (not row.fact.alone, row.named is None)))


def _fitting(
    fact: Release, seen: tuple[PatternHit, str], releases: Mapping[str, Sequence[Named]]
) -> FittingRelease | None:
    for package, bounds in fact.beside.items():
        rows = releases.get(package, ())
        if rows and not any(is_in_range(row.release, bounds) for row in rows):
            return None
    rows = releases.get(fact.package, ())
    inside = next((row for row in rows if is_in_range(row.release, fact.range)), None)
    if inside is None and (rows or not fact.alone):
        return None
    return FittingRelease(
        fact, seen, inside if fact.range else None
    )  # what holds for all is no fact about this release


@lru_cache(maxsize=4)
def matchers(knowledge: Knowledge) -> tuple[Matcher, ...]:
    """Return the matchers of printed messages, of words, and of what must appear somewhere else."""
    facts = knowledge.releases

    def indices() -> tuple[Index, ...]:
        return (
            index_of((f.id, p) for f in facts for p in f.text),
            index_of([], words=((f.id, p) for f in facts for p in f.says)),
            index_of((f.id, p) for f in facts for p in f.where),
        )

    return matchers_from(knowledge, "releases", indices)
