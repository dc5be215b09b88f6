"""The checks over the files that stacks name: what stands on the lines where ranks fail or wait."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from dtdebug.check.files import UnreadableError, read
from dtdebug.clean import clean
from dtdebug_taxonomy import sourced
from dtdebug_taxonomy.failure import reading
from dtdebug_taxonomy.frames import is_library
from dtdebug_taxonomy.knowledge import load
from dtdebug_taxonomy.ranks import Frame
from dtdebug_taxonomy.snapshot import Snapshot, SourceFinding, walk
from dtdebug_taxonomy.source.python import Code

MOST_FILES, MOST_BYTES = 12, 400_000
"""Files that are read for one failure, and how large one may be: a program, not what was generated."""


def sourced_snapshot(snapshot: Snapshot) -> Snapshot:
    """The snapshot with what the checks see in the user's own files that its stacks name, as far as they are here."""
    stacks = _stacks(snapshot)
    verdict = snapshot.verdict
    culprits = verdict.culprits if verdict is not None else ()
    sources = _sources(stacks, culprits)
    if not sources:
        return snapshot
    found = sourced.findings_in(load(), sources, stacks, culprits)
    found = tuple(_cleaned(f) for f in found)
    if verdict is not None and verdict.kind != "none" and (more := sourced.claims(found)):
        texts = tuple(claim.text for claim in more)
        new = (claim for claim in more if claim not in verdict.claims)  # a verdict that was kept has them already
        verdict = msgspec.structs.replace(
            verdict, claims=(*verdict.claims, *new), evidence=tuple(dict.fromkeys((*verdict.evidence, *texts)))
        )
    return msgspec.structs.replace(snapshot, source_findings=found, verdict=verdict)


def _stacks(snapshot: Snapshot) -> dict[int | None, tuple[Frame, ...]]:
    """Rank -> its frames: of living and ended ranks, of the places of the verdict, of exceptions, of the output."""
    stacks: dict[int | None, tuple[Frame, ...]] = {}

    def note(rank: int | None, frames: Sequence[Frame]) -> None:
        stacks[rank] = (*stacks.get(rank, ()), *frames)

    for state in snapshot.ranks:
        note(state.rank, state.stack)
    for site in snapshot.verdict.sites if snapshot.verdict is not None else ():
        note(site.rank, (Frame(site.file, site.line, site.function),))
    for info in walk(snapshot.exception):
        note(info.rank, info.frames)
    for raised in reading.read(snapshot).events.raised:
        note(raised.rank, raised.frames)
    return stacks


def _sources(stacks: Mapping[int | None, Sequence[Frame]], culprits: Sequence[int]) -> dict[str, Code]:
    """The user's own Python files, those of culprits first."""
    order = sorted(stacks, key=lambda rank: rank not in culprits)
    files = dict.fromkeys(f.file for rank in order for f in reversed(stacks[rank]))
    sources: dict[str, Code] = {}
    for file in files:
        if len(sources) == MOST_FILES:
            break
        path = Path(file)
        if path.suffix != ".py" or is_library(file):
            continue
        try:
            if path.stat().st_size <= MOST_BYTES:
                sources[file] = Code(read(path).text, path=file)
        except (OSError, ValueError, UnreadableError):  # of another machine, gone, or no text
            continue
    return sources


def _cleaned(found: SourceFinding) -> SourceFinding:
    return msgspec.structs.replace(
        found,
        message=clean(found.message),
        words=clean(found.words),
        diff=found.diff if clean(found.diff) == found.diff else "",  # a patch with masked secrets would not apply
    )
