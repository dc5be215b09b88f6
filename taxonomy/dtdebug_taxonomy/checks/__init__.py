"""The checks: what can be seen wrong in a program, script or configuration before it runs.

A folder each, named by id and by what is wrong: `check.toml` (what it is), `check.py` (the
function), `doc.md` (its page), examples that must and must not be reported. Nothing is
registered anywhere: the folders are the list.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from dtdebug_taxonomy.kept import kept
from dtdebug_taxonomy.model import KnowledgeRecord, Reference
from dtdebug_taxonomy.source.source import Kind
from dtdebug_taxonomy.source.text import Span

HOME = Path(__file__).parent
SITE = "https://dtdebug.readthedocs.io/en/latest"
Severity = Literal["error", "warning", "information", "hint"]


class Edit(NamedTuple):
    """A span of the text and what takes its place."""

    span: Span
    text: str


class Fix(NamedTuple):
    """Edits that fix one hit; they do not overlap."""

    title: str
    """What it does, as an order: "Call it on every rank"."""
    edits: tuple[Edit, ...]
    safe: bool | None = None
    """Overrides the check's own `safe`, where a single fix is less safe than the others."""


class Hit(NamedTuple):
    """A place where a check sees what it is about."""

    span: Span
    message: str
    """What is wrong here, what follows from it, in one or two sentences."""
    fix: Fix | None = None
    severity: Severity | None = None
    """Where it is another one than the check's: how sure this place is."""


class Oracle(KnowledgeRecord, frozen=True, kw_only=True):
    """How `run.py` shows that the check's page is right."""

    ranks: int = 2
    """Processes; 1 is a plain program."""
    expect: Literal["hang", "error", "output"]
    """hang: still running at the limit; error: ends with an error; output: ends well."""
    says: str = ""
    """Pattern that the output holds."""
    limit_s: int = 20


class Check(KnowledgeRecord, frozen=True, kw_only=True):
    """`check.toml`."""

    title: str
    """What is wrong, in a few words."""
    cause: str
    """Id of the cause that it sees in the source (`symptoms/*.toml`): the fix pattern is that of the cause."""
    symptom: tuple[str, ...]
    """Codes of what is seen when such a program runs, that of the cause first."""
    severity: Severity
    """`warning` only for what contradicts one API's contract; heuristics are `hint`."""
    precision: Literal["certain", "high", "medium", "low"]
    files: tuple[Kind, ...] = ("python",)
    words: tuple[str, ...] = ()
    """The text must hold one of these, else the check is not even asked; none: it always is."""
    also: tuple[str, ...] = ()
    """The text must hold one of these, too: what nearly every program holds is no reason to parse it."""
    programs_only: bool = False
    """Off in tests and in libraries, where what is missing can be in another file."""
    safe: bool = False
    """Its fix keeps what a correct program does; only such fixes are applied all at once."""
    versions: str = ""
    """Releases to which it applies, in words."""
    reference: tuple[Reference, ...]
    oracle: Oracle | None = None
    id: str = ""
    """`DT101`; by the folder's name."""
    name: str = ""
    """`collective-under-rank-guard`; by the folder's name."""

    @property
    def folder(self) -> Path:
        """Where its files are."""
        return HOME / f"{self.id.lower()}_{self.name.replace('-', '_')}"

    @property
    def pattern(self) -> str:
        """Id of the fix pattern, which is that of its cause (`patterns.toml`)."""
        from dtdebug_taxonomy.knowledge import load as knowledge

        return knowledge().causes[self.cause][1].pattern

    @property
    def page(self) -> str:
        """Its page: Markdown."""
        return (self.folder / "doc.md").read_text(encoding="utf-8")

    @property
    def function(self) -> Callable[[Any], Iterator[Hit]]:
        """The function that sees it, given a source of one of its kinds."""
        return _function(self.folder.name)


def page_address(check: Check) -> str:
    """The address of a check's page on the documentation site."""
    return f"{SITE}/checks/{check.id}/"


@cache
def _function(folder: str) -> Callable[[Any], Iterator[Hit]]:
    function: Callable[[Any], Iterator[Hit]] = import_module(f"{__name__}.{folder}.check").check
    return function


@lru_cache(maxsize=1)
def load() -> dict[str, Check]:
    """All checks by id.

    Raises:
        ValueError: a `check.toml` is broken; says which and what.

    """
    return kept("checks", dict[str, Check], _read, tuple(sorted(HOME.glob("dt*"))))


def _read() -> dict[str, Check]:
    found: dict[str, Check] = {}
    for file in sorted(HOME.glob("dt*/check.toml")):
        number, _, name = file.parent.name.partition("_")
        try:
            check = msgspec.convert(tomllib.loads(file.read_text(encoding="utf-8")), Check)
        except (msgspec.ValidationError, tomllib.TOMLDecodeError) as error:
            raise ValueError(f"{file.parent.name}/check.toml: {error}") from None
        found[number.upper()] = msgspec.structs.replace(check, id=number.upper(), name=name.replace("_", "-"))
    return found
