"""Runs the checks over the files named by stacks, and reports what they and the messages say of the user's lines."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from dtdebug.privacy.sanitize import clean
from dtdebug_taxonomy import named_files
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.logs import log as logs
from dtdebug_taxonomy.model.account import Place
from dtdebug_taxonomy.model.ranks import Frame, Verdict, in_doubt, say
from dtdebug_taxonomy.model.snapshot import Excerpt, Snapshot, SourceFinding, walk
from dtdebug_taxonomy.source.joined_lines import MOST_LINES
from dtdebug_taxonomy.stacks.frames import is_library, short

if TYPE_CHECKING:
    from dtdebug_taxonomy.source.python.code import Code
    from dtdebug_taxonomy.source.python.project import Project
    from dtdebug_taxonomy.source.source import Source

_READ = frozenset((".py", ".yaml", ".yml", ".json", ".toml"))
_SCRIPTS = frozenset((".sh", ".bash", ".sbatch", ".slurm"))
MOST_ENTRIES = 1_000
"""Maximum number of entries of a folder that are looked at for the script that starts a program."""
MOST_FILES, MOST_BYTES = 12, 400_000
"""Maximum number of files read for one failure, and maximum size of one in bytes; larger ones are generated."""
_ADDRESS = re.compile(r"can't open file '[^'\s]{0,300}?[\w.-]{1,60}:(\d{4,5})'")
_SEVERAL_WORDS = "DT926"
"""Check for a launcher's address that can be several words."""
_SITES = 4
"""Maximum number of ranks whose lines are kept with those of the test at which they parted."""
_AROUND = 3
"""Lines on each side of a place that are kept for a diff."""
_GUARDED = "source-collective-on-some-ranks"
"""Evidence whose checks find collectives that only some ranks reach."""
_UNDECIDED = 0.5
"""Maximum confidence when two equally large sides disagree."""
_BY_SOURCE = 0.75
"""Confidence in a verdict that the source decides."""


def sourced_snapshot(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with check findings in the user's own files that its stacks name and that exist here."""
    if snapshot.accounts or snapshot.parting is not None:
        snapshot = msgspec.structs.replace(snapshot, excerpts=_excerpts(snapshot))
    stacks = _stacks(snapshot)
    verdict = snapshot.verdict
    culprits = verdict.culprits if verdict is not None else ()
    sources = _sources(stacks, culprits)
    if not sources and not snapshot.cell:
        return _with_launch_script(snapshot)
    from dtdebug_taxonomy.inference import from_source
    from dtdebug_taxonomy.inference.from_measurements import cell_name

    waits = verdict is not None and verdict.kind not in {"dead", "none"}
    found = from_source.findings_in(load(), {**sources, **_launch_scripts(sources)}, stacks, culprits, waits)
    if snapshot.cell.strip():
        cells = (*snapshot.cells, snapshot.cell)
        names = [cell_name(snapshot, number) for number in range(len(cells))]
        found = (*found, *from_source.findings_in_cells(load(), cells, names, stacks, culprits, waits))
    found = tuple(_clean_finding(f) for f in (*_asked_for(snapshot, sources, stacks), *found))
    if verdict is not None:
        verdict = _decide_by_source(verdict, found)
    told = [f for f in found if f.near == "line" or verdict is None or verdict.kind != "dead"]  # it fails on that line
    if verdict is not None and verdict.kind != "none" and (more := from_source.claims(told)):
        texts = tuple(claim.text for claim in more)
        new = (claim for claim in more if claim not in verdict.claims)  # a stored verdict already has them
        verdict = msgspec.structs.replace(
            verdict, claims=(*verdict.claims, *new), evidence=tuple(dict.fromkeys((*verdict.evidence, *texts)))
        )
    return msgspec.structs.replace(snapshot, source_findings=found, source_read=bool(sources), verdict=verdict)


def _with_launch_script(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with the value of a script beside a log whose launcher took an address for the program.

    What is a hint in a script alone has happened here.
    """
    took = _ADDRESS.search(snapshot.output)
    if took is None or not snapshot.source or not Path(snapshot.source).is_file():
        return snapshot
    from dtdebug_taxonomy.inference import from_source

    scripts = _scripts_in(Path(snapshot.source).resolve().parent, (f":{took[1]}", "rdzv", "master"))
    found = tuple(f for f in from_source.findings_in(load(), scripts, {}) if f.check == _SEVERAL_WORDS)
    if len({f.file for f in found}) != 1:
        return snapshot
    return msgspec.structs.replace(
        snapshot,
        source_findings=tuple(msgspec.structs.replace(_clean_finding(f), hint=False) for f in found),
        source_read=True,
    )


def _excerpts(snapshot: Snapshot) -> tuple[Excerpt, ...]:
    """Return the lines around each place that an account names; none that holds what looks like a secret."""
    places = [p for a in snapshot.accounts for p in (a.place, *(link.place for link in a.links)) if p is not None]
    if snapshot.parting is not None:
        branch, sites = snapshot.parting.branch, snapshot.verdict.sites if snapshot.verdict is not None else ()
        places += [branch.place, *(link.place for link in branch.links)]
        places += [Place(file=s.file, line=s.line) for s in sites[:_SITES]]
    files = list(dict.fromkeys(p.file for p in places))[:MOST_FILES]
    cells = _lines_of_cells(snapshot)
    found: dict[tuple[str, int], Excerpt] = {}
    for file in files:
        lines = cells.get(file) or _lines(file)
        for place in places:
            first = max(1, place.line - _AROUND)
            several = lines[place.line - 1 : place.line] != [] and lines[place.line - 1].strip() != place.code
            last = place.line + _AROUND + (MOST_LINES if several and place.code else 0)
            part = tuple(lines[first - 1 : last])
            if place.file == file and part and clean("\n".join(part)) == "\n".join(part):
                found[file, place.line] = Excerpt(file=file, first=first, lines=part)
    return tuple(found.values())


def _lines_of_cells(snapshot: Snapshot) -> dict[str, list[str]]:
    """Return name of a cell -> its lines."""
    from dtdebug_taxonomy.inference.from_measurements import cell_name

    cells = (*snapshot.cells, snapshot.cell) if snapshot.cell.strip() else ()
    return {f"cell {cell_name(snapshot, number)}": text.split("\n") for number, text in enumerate(cells)}


def _lines(file: str) -> list[str]:
    """Return the lines of a program or a configuration file of the user's; empty if it is not at hand."""
    path = Path(file)
    try:
        if path.suffix not in _READ or is_library(file) or path.stat().st_size > MOST_BYTES:
            return []
        from dtdebug.check.files import UnreadableError, read_source
    except (OSError, ValueError):  # on another machine, or deleted
        return []
    try:
        return read_source(path).text.split("\n")
    except (OSError, ValueError, UnreadableError):  # not text
        return []


def _decide_by_source(verdict: Verdict, found: Sequence[SourceFinding]) -> Verdict:
    """Blame the one side that is in a call which only its ranks can reach according to the source."""
    if (verdict.culprits and verdict.confidence > _UNDECIDED) or verdict.kind not in ("extra", "replaced", "skipped"):
        return verdict
    guards = load().evidence[_GUARDED].check
    lines = {f.rank: f for f in found if f.near == "line" and f.check in guards and f.rank is not None}
    rivals = verdict.alternatives[:1] if verdict.culprits else verdict.alternatives  # the first is the opposing side
    sides = [a for a in rivals if a.culprits and lines.keys() >= set(a.culprits)]
    if len(sides) != 1 or lines.keys() & set(verdict.culprits):
        return verdict
    (side,) = sides
    f = lines[side.culprits[0]]
    rest = tuple(sorted({*verdict.waiting, *verdict.culprits} - {*side.culprits}))
    others = next((a.because for a in verdict.alternatives if a is not side), f"{say(rest, 'are')} elsewhere")
    because = f"{side.because[:1].upper()}{side.because[1:]}"
    said = f"{because} at {short(f.file)}:{f.line}, a line that no other rank reaches; {others}."
    return msgspec.structs.replace(
        verdict,
        kind="extra",
        culprits=side.culprits,
        waiting=rest,
        sites=tuple(sorted(verdict.sites, key=lambda site: site.rank not in side.culprits)),
        confidence=_BY_SOURCE,
        summary=in_doubt(said) if verdict.open else said,
        alternatives=tuple(a for a in verdict.alternatives if a is not side),
    )


def _stacks(snapshot: Snapshot) -> dict[int | None, tuple[Frame, ...]]:
    """Return rank -> its frames: of live and ended ranks, verdict sites, exceptions, and the output."""
    stacks: dict[int | None, tuple[Frame, ...]] = {}

    def note(rank: int | None, frames: Sequence[Frame]) -> None:
        stacks[rank] = (*stacks.get(rank, ()), *frames)

    for state in snapshot.ranks:
        note(state.rank, state.stack)
    for site in snapshot.verdict.sites if snapshot.verdict is not None else ():
        note(site.rank, (Frame(site.file, site.line, site.function),))
    for info in walk(snapshot.exception):
        note(info.rank, info.frames)
    for raised in logs.read_output(snapshot).events.raised:
        note(raised.rank, raised.frames)
    for place in (a.place for a in snapshot.accounts):
        if place is not None and place.file.startswith("cell "):  # the output names a file of the kernel's
            note(None, (Frame(place.file, place.line, place.function),))
    return stacks


def _sources(stacks: Mapping[int | None, Sequence[Frame]], culprits: Sequence[int]) -> dict[str, Code]:
    """Return the user's own Python files, culprits' first; the parser is imported only if there is one."""
    first = {*culprits}
    order = sorted(stacks, key=lambda rank: rank not in first)
    files = dict.fromkeys(f.file for rank in order for f in reversed(stacks[rank]))
    sources: dict[str, Code] = {}
    project: Project | None = None
    for file in files:
        if len(sources) == MOST_FILES:
            break
        if is_library(file) or (data := named_files.read_shown_source(file, MOST_BYTES)) is None:
            continue  # on another machine, deleted, or no source of this user's
        from dtdebug.check.files import UnreadableError, decode_source
        from dtdebug_taxonomy.source.python.code import Code
        from dtdebug_taxonomy.source.python.project import Project

        try:
            code = Code(decode_source(Path(file), data).text, path=file)
        except (ValueError, UnreadableError):  # not text
            continue
        project = Project(_module_text) if project is None else project
        code.project = project
        sources[file] = code
    return sources


def _module_text(path: str) -> str | None:
    """Return the text of a module of the user's that one of the files imports; None if it may not be read."""
    from dtdebug.check.files import UnreadableError, decode_source

    try:
        data = None if is_library(path) else named_files.read_shown_source(path, MOST_BYTES)
        return None if data is None else str(decode_source(Path(path), data).text)
    except (OSError, ValueError, UnreadableError):
        return None


def _launch_scripts(sources: Mapping[str, Code]) -> dict[str, Source]:
    """Return the shell script beside the program that starts it, if there is just one."""
    found: dict[str, Source] = {}
    folders = dict.fromkeys(Path(file).parent for file, code in sources.items() if code.role == "program")
    names = {Path(file).name for file in sources}
    for folder in folders:
        found |= _scripts_in(folder, names)
    return found if len(found) == 1 else {}


def _scripts_in(folder: Path, words: Collection[str]) -> dict[str, Source]:
    """Return the shell scripts of a folder that hold one of these words."""
    from dtdebug.check.files import UnreadableError, read_source
    from dtdebug_taxonomy.source import kinds

    found: dict[str, Source] = {}
    try:
        files = sorted(f for f in islice(folder.iterdir(), MOST_ENTRIES) if f.suffix in _SCRIPTS and f.is_file())
    except OSError:
        return {}
    for file in files[:MOST_FILES]:
        try:
            text = read_source(file).text if file.stat().st_size <= MOST_BYTES else ""
        except (OSError, ValueError, UnreadableError):
            continue
        if any(word in text for word in words) and (source := kinds.parse_file(str(file), text)) is not None:
            found[str(file)] = source
    return found


def _asked_for(
    snapshot: Snapshot, sources: Mapping[str, Code], stacks: Mapping[int | None, Sequence[Frame]]
) -> Iterator[SourceFinding]:
    """Yield what the messages of a failure ask to edit in the user's files and cells."""
    from dtdebug_taxonomy.inference.from_measurements import cell_name
    from dtdebug_taxonomy.inference.message_edits import edits_in, edits_in_cells

    raised = (info.message for info in walk(snapshot.exception))
    text = "\n".join((snapshot.output, *raised, *(r.exception for r in snapshot.ranks if r.exception)))
    for file, code in sources.items():
        yield from edits_in(file, code, text, [f.line for rows in stacks.values() for f in rows if f.file == file])
    if snapshot.cell.strip():
        from dtdebug_taxonomy.source.notebook import Notebook

        notebook = Notebook([("code", cell) for cell in (*snapshot.cells, snapshot.cell)])
        yield from edits_in_cells(notebook, [cell_name(snapshot, n) for n in range(len(notebook.cells))], text)


def _clean_finding(found: SourceFinding) -> SourceFinding:
    return msgspec.structs.replace(
        found,
        message=clean(found.message),
        words=clean(found.words),
        diff=found.diff if clean(found.diff) == found.diff else "",  # a patch with masked secrets would not apply
    )
