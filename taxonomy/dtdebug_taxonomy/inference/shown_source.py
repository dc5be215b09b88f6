"""Hits of the checks in the source and the commands that a text shows along with a failure."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING, NamedTuple

from dtdebug_taxonomy.model.snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dtdebug_taxonomy.checks.run.examine import CheckedHit
    from dtdebug_taxonomy.source.fenced_blocks import SourceBlock
    from dtdebug_taxonomy.source.source import Source

SHOWN = "the source shown"
"""Replaces a file's name: source shown by the user is the user's own."""

_SHORT = 20_000
"""Maximum characters of an output in which source without fences is looked for."""


class ShownHit(NamedTuple):
    """A hit of a check, where the text shows it."""

    hit: CheckedHit
    line: int
    """1-based line of the text."""
    words: str
    diff: str


def hits_in_shown(snapshot: Snapshot) -> tuple[ShownHit, ...]:
    """Return the first hit of each check in what the output and the user's words show."""
    return _hits(snapshot.output, snapshot.situation)


def _cut(source: Source) -> int:
    """Return the offset from which a command is cut off: what follows a quote without an end may be inside of it."""
    parts = source.unread if source.kind == "shell" else ()
    opened = (source.text.rfind("\n", 0, part.span.start) + 1 for part in parts if "has no end" in part.why)
    return min(opened, default=len(source.text))


def _join_program(blocks: Sequence[SourceBlock]) -> None:
    """Let a script find its program in the post: the only whole one that is shown, if the script starts only one."""
    from dtdebug_taxonomy.source.python.code import Code
    from dtdebug_taxonomy.source.python.project import Project
    from dtdebug_taxonomy.source.shell.script import Script

    whole = [b.source for b in blocks if isinstance(b.source, Code) and b.verbatim]
    if len(whole) != 1 or sum(isinstance(b.source, Code) for b in blocks) != 1:
        return
    text = str(whole[0].text)
    for script in (b.source for b in blocks if isinstance(b.source, Script)):
        names = {w.text for c in script.commands for w in c.words if w.text.endswith(".py")}
        if len(names) == 1:
            name = names.pop().rpartition("/")[2]
            script.path = "shown.sh"
            script.project = Project(partial(_text_of, name, text))


def _text_of(name: str, text: str, path: str) -> str | None:
    """Return the text of the program that a post shows, if that is asked for."""
    return text if path.rpartition("/")[2] == name else None


@lru_cache(maxsize=4)
def _hits(output: str, situation: str) -> tuple[ShownHit, ...]:
    from dtdebug_taxonomy.source.fenced_blocks import source_blocks, speaks_of_wrapper

    wrapped = speaks_of_wrapper(situation) or speaks_of_wrapper(output[-_SHORT:])
    blocks = [
        *source_blocks(output, code=len(output) <= _SHORT, wrapped=wrapped),
        *source_blocks(situation, code=True, wrapped=wrapped),
    ]
    if not blocks:
        return ()
    from dtdebug_taxonomy.checks.run.examine import examine
    from dtdebug_taxonomy.checks.run.settings import Settings
    from dtdebug_taxonomy.inference.from_source import diff_of

    settings = Settings()
    found: dict[str, ShownHit] = {}
    _join_program(blocks)
    for source, first, added, verbatim in blocks:
        hits = examine(source, settings, failed=lambda check, error: None)
        cut = _cut(source)
        for hit in hits:
            if hit.check.id in found:  # one is enough, and proving each diff takes another examination
                continue
            if hit.span.end > cut:
                continue
            line = source.text.place(hit.span.start).line
            name = "shown.py" if source.kind == "python" else "shown.sh"
            found[hit.check.id] = ShownHit(
                hit,
                first + line - 1,
                source.text.line(line).strip(),
                diff_of(name, source, hits, hit, settings, added) if verbatim else "",
            )
    return tuple(found.values())
