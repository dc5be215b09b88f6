"""Checks that detect errors in a program, script or configuration before it runs.

One folder per check, named by its id and by the error: `check.toml` (metadata), `check.py` (the function), `doc.md`
(its page), and examples that must and must not be reported. There is no registry: the folders are the list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import msgspec

from dtdebug_taxonomy.knowledge.cache import load_cached
from dtdebug_taxonomy.knowledge.schema import KnowledgeRecord, Reference
from dtdebug_taxonomy.source.source import Kind
from dtdebug_taxonomy.source.text import Span

HOME = Path(__file__).parent
SITE = "https://dtdebug.readthedocs.io/en/latest"
Severity = Literal["error", "warning", "information", "hint"]


class Edit(NamedTuple):
    """Span of the text and its replacement."""

    span: Span
    text: str


class Fix(NamedTuple):
    """Edits that fix one hit and do not overlap."""

    title: str
    """Imperative title of the fix: "Call it on every rank"."""
    edits: tuple[Edit, ...]
    safe: bool | None = None
    """Overrides the check's `safe` if this fix is less safe than the check's others."""


class Hit(NamedTuple):
    """Place in a source that a check reports."""

    span: Span
    message: str
    """Problem at this place and its consequence, in one or two sentences."""
    fix: Fix | None = None
    severity: Severity | None = None
    """Severity of this hit if it differs from the check's."""


class Oracle(KnowledgeRecord, frozen=True, kw_only=True):
    """Expected behaviour by which `run.py` verifies the check's page."""

    ranks: int = 2
    """Number of processes; 1 runs a plain program."""
    expect: Literal["hang", "error", "output"]
    """hang: still running at the limit; error: exits with an error; output: succeeds."""
    says: str = ""
    """Pattern that must match the output."""
    limit_s: int = 20


class Check(KnowledgeRecord, frozen=True, kw_only=True):
    """Contents of `check.toml`."""

    title: str
    """Problem in a few words."""
    cause: str
    """Id of the cause that it detects in the source (`symptoms/*.toml`); determines the fix pattern."""
    symptom: tuple[str, ...]
    """Codes of the symptoms of such a program, that of the cause first."""
    severity: Severity
    """`warning` only for a violation of one API's contract; heuristics are `hint`."""
    precision: Literal["certain", "high", "medium", "low"]
    files: tuple[Kind, ...] = ("python",)
    words: tuple[str, ...] = ()
    """Words, one of which must occur in the text for the check to run; if empty, it always runs."""
    also: tuple[str, ...] = ()
    """Further words, one of which must occur, so that a common word alone does not cause parsing."""
    programs_only: bool = False
    """Off in tests and libraries, where the missing code may be in another file."""
    safe: bool = False
    """True if its fix preserves correct programs; only such fixes are applied in bulk."""
    optional: bool = False
    """Off unless its own id or name is selected, or ALL: what it reports is true, and seldom worth a change."""
    versions: str = ""
    """Releases that it applies to, in words."""
    reference: tuple[Reference, ...]
    oracle: Oracle | None = None
    measured: tuple[str, ...] = ()
    """Invariants, of those that a run is watched or compared for, which a program with this fault violates."""
    id: str = ""
    """`DT101`; derived from the folder's name."""
    name: str = ""
    """`collective-under-rank-guard`; derived from the folder's name."""

    @property
    def folder(self) -> Path:
        """Folder of the check's files."""
        return HOME / f"{self.id.lower()}_{self.name.replace('-', '_')}"

    @property
    def pattern(self) -> str:
        """Id of the fix pattern of its cause (`patterns.toml`)."""
        from dtdebug_taxonomy.knowledge.loader import load as knowledge

        return knowledge().causes[self.cause][1].pattern

    @property
    def page(self) -> str:
        """Markdown text of its page."""
        if self is UNUSED_IGNORE:
            return (HOME / "run" / "unused_ignore.md").read_text(encoding="utf-8")
        return (self.folder / "doc.md").read_text(encoding="utf-8")

    @property
    def function(self) -> Callable[[Any], Iterator[Hit]]:
        """Function that implements it; takes a source of one of its kinds."""
        return _function(self.folder.name)


UNUSED_IGNORE = Check(
    id="DT001",
    name="unused-ignore",
    title="A comment suppresses nothing",
    cause="",
    symptom=(),
    severity="hint",
    precision="certain",
    files=get_args(Kind),
    reference=(),
)
"""Finding about a suppressing comment. It follows from all other findings, so it has no function and no folder."""


def page_address(check: Check) -> str:
    """Return the address of a check's page on the documentation site."""
    return f"{SITE}/checks/{check.id}/"


@cache
def _function(folder: str) -> Callable[[Any], Iterator[Hit]]:
    function: Callable[[Any], Iterator[Hit]] = import_module(f"{__name__}.{folder}.check").check
    return function


@lru_cache(maxsize=1)
def load() -> dict[str, Check]:
    """Return all checks by id.

    Raises:
        ValueError: a `check.toml` is invalid; the message names the folder and the problem.

    """
    return load_cached("checks", dict[str, Check], _read, (HOME,))


def known_checks() -> Iterator[Check]:
    """Yield all checks that settings and comments can name."""
    yield UNUSED_IGNORE
    yield from load().values()


def _read() -> dict[str, Check]:
    import tomllib

    found: dict[str, Check] = {}
    for file in sorted(HOME.glob("dt*/check.toml")):
        number, _, name = file.parent.name.partition("_")
        try:
            check = msgspec.convert(tomllib.loads(file.read_text(encoding="utf-8")), Check)
        except (msgspec.ValidationError, tomllib.TOMLDecodeError) as error:
            raise ValueError(f"{file.parent.name}/check.toml: {error}") from None
        found[number.upper()] = msgspec.structs.replace(check, id=number.upper(), name=name.replace("_", "-"))
    return found
