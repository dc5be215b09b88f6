"""Hits of the checks in the source and the commands that a text shows along with a failure."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from dtdebug_taxonomy.model.snapshot import Snapshot

if TYPE_CHECKING:
    from dtdebug_taxonomy.checks.run.examine import CheckedHit

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
    for source, first, added, verbatim in blocks:
        hits = examine(source, settings, failed=lambda check, error: None)
        for hit in hits:
            if hit.check.id in found:  # one is enough, and proving each diff takes another examination
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
