"""Formats a case as text for a terminal, and packs a run as one archive to send."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from dtdebug.privacy.sanitize import MASK, clean, mask
from dtdebug.storage import state_dir as files
from dtdebug.storage.run_folder import RunFolder
from dtdebug_taxonomy import named_files
from dtdebug_taxonomy.diagnosis.headline import claims_seen
from dtdebug_taxonomy.model.ranks import CallSite, Verdict, ranges
from dtdebug_taxonomy.presentation import text as diagnosis_text
from dtdebug_taxonomy.presentation.case_json import Case

_SITES, _SEEN, _NOTES = 6, 6, 6
"""Maximum numbers of lines of each part on a terminal; verdict.json has all."""
_MEMBER_LIMIT, _MEMBERS = 16 << 20, 5_000
_ROADS_SHOWN = 8
_DIFFERENCES = 6
_COMMANDS = 16


def to_text(found: Case, what: str, folder: RunFolder | None = None, *, brief: bool = False) -> str:
    """Format the verdict with places, reasons, explanation and advice; each line is safe to show.

    Briefly: only what is new to a user who has seen the rest.
    """
    lines = [f"dtdebug: {first_line(found, what)}"]
    if found.verdict.summary and what:
        lines.append(f"  {clean(what)}")
    lines += _notes(found) if brief else _details(found)
    if folder is not None:
        path = clean(str(folder.path))
        lines += [f"  all that was collected: {path}", f"  to send it: dtdebug report {path}"]
    return "\n".join(lines) + "\n"


def first_line(found: Case, what: str) -> str:
    """Return the event: the verdict, else what was noticed."""
    return _line(found.verdict.summary or what)


def _details(found: Case) -> Iterator[str]:
    v = found.verdict
    yield from (f"  {line}" for line in _sites(v))
    if v.kind != "none" and v.confidence > 0 and not v.open:
        yield f"  confidence: {v.confidence:.0%}"
    rows = claims_seen(v)
    yield from (f"  seen: {_line(diagnosis_text.seen_line(row))}" for row in rows[:_SEEN])
    if len(rows) > _SEEN:
        yield f"  ... {len(rows) - _SEEN} more in verdict.json"
    for a in v.alternatives[:2]:
        refute = f"; to tell: {_line(a.refute)}" if a.refute else ""
        yield f"  or: {a.kind}, rank {ranges(a.culprits)}: {_line(a.because)}{refute}"
    if v.stragglers:
        yield f"  always last: rank {ranges(v.stragglers)}"
    yield from _violation_lines(found)
    yield from _classes(found)
    yield from _differences(found)
    yield from _silent(found)
    yield from _command_lines(found)
    yield from _coverage_lines(found)
    yield from _notes(found)
    if found.next:
        yield f"  next: {_line(found.next)}"
    if found.diagnosis is not None and found.diagnosis.recognised:
        yield from (
            f"{clean(line)}" for line in diagnosis_text.reading(found.diagnosis, following=not found.next, full=True)
        )


def _violation_lines(found: Case) -> Iterator[str]:
    """Yield the violated training invariants and the late ranks."""
    if found.watch or found.late:
        from dtdebug.experiments.invariants.result import lines

        yield from (f"  {clean(line)}" for line in lines(found.watch, found.late))


def _coverage_lines(found: Case) -> Iterator[str]:
    """Yield what was read, and what was not."""
    c = found.coverage
    if c.read:
        yield f"  read: {_line('; '.join(c.read))}"
    yield from (f"  not read: {_line(reason)}" for reason in c.unread[:_NOTES])
    if len(c.unread) > _NOTES:
        yield f"  ... {len(c.unread) - _NOTES} more in verdict.json"


def _notes(found: Case) -> Iterator[str]:
    yield from (f"  note: {_line(n)}" for n in found.notes[:_NOTES])


def _sites(v: Verdict) -> Iterator[str]:
    """Yield the places of culprits one by one, then those of waiting ranks joined by place."""
    culprits = [site for site in v.sites if site.rank in v.culprits]
    waiting: dict[tuple[str, int, str], list[int]] = {}
    for site in v.sites:
        if site.rank not in v.culprits:
            waiting.setdefault((site.file, site.line, site.function), []).append(site.rank)
    rows = [("culprit", [site.rank], site) for site in culprits]
    rows += [("waits", ranks, CallSite(ranks[0], *place)) for place, ranks in waiting.items()]
    for role, ranks, site in rows[:_SITES]:
        code = _source(site.file, site.line)
        place = f"{site.file}:{site.line} in {site.function}"
        yield f"{role}: rank {ranges(ranks)} at {_line(place)}{f'  | {code}' if code else ''}"
    if len(rows) > _SITES:
        yield f"... {len(rows) - _SITES} more places in verdict.json"


def _source(file: str, line: int) -> str:
    """Return the line of the user's code, if that file is here."""
    return clean(named_files.source_line(file, line)[:200])


def _classes(found: Case) -> Iterator[str]:
    """Yield groups of ranks with the same stack, if stacks are known, and their progress."""
    if not any(s.stack for s in found.ranks if s.rank is not None):
        return
    from dtdebug.live.probe import stack_tree

    yield from (f"  {line}" for line in clean(stack_tree.to_text(found.ranks, found.verdict.culprits)).splitlines())
    if found.progress:
        yield f"  between two looks: {stack_tree.progress_text(found.progress)}"


def _differences(found: Case) -> Iterator[str]:
    """Yield unexpected differences between the ranks: variables, versions, data."""
    from dtdebug.live.probe import rank_differences

    telling = [d for d in rank_differences.differences(found.ranks) if d.suspicion != "expected"]
    if telling:
        yield from (
            f"  differs: {line}" for line in clean(rank_differences.to_text(telling, _DIFFERENCES)).splitlines()
        )


def _silent(found: Case) -> Iterator[str]:
    """Yield the failed attempts to read ranks that are alive or were not found."""
    silent = [s for s in found.ranks if s.alive is not False and not s.stack and not s.gil_held and s.roads]
    for state in silent[:_ROADS_SHOWN]:
        said = "; ".join(f"{road}: {_line(answer)}" for road, answer in state.roads.items() if answer != "ok")
        if said:
            yield f"  no stack of rank {state.rank if state.rank is not None else f'in process {state.pid}'}: {said}"
    if len(silent) > _ROADS_SHOWN:
        yield f"  ... nor of {len(silent) - _ROADS_SHOWN} other ranks"


def _command_lines(found: Case) -> Iterator[str]:
    """Yield commands that would ask the ranks that were not reached."""
    if found.unanswered and not found.commands:
        yield f"  no answer of rank {ranges(found.unanswered)}: --host NAME names another host where it may be"
    elif found.commands:
        yield f"  no answer of rank {ranges(found.unanswered)}" if found.unanswered else "  all ranks answered"
        yield "  to ask on other hosts (--go runs this):"
    yield from (f"    {clean(command)}" for command in found.commands[:_COMMANDS])
    if len(found.commands) > _COMMANDS:
        yield f"    ... {len(found.commands) - _COMMANDS} more with --format json"


def _line(text: str) -> str:
    return " ".join(clean(text).split())[:1_000]


class ArchivedFile(NamedTuple):
    """A file of an archive, as it would be sent."""

    path: Path
    inside: str
    size: int
    masked: int
    """Number of secrets that were masked in it."""
    binary: bool = False
    """True for a dump, which is included unchanged."""

    def line(self) -> str:
        """Format the line that tells the sender what the file contains."""
        told = "as it is, nothing masked in it" if self.binary else f"{self.masked} masked" if self.masked else ""
        return f"{self.inside}  {self.size:,} bytes{f'  {told}' if told else ''}"


def survey(folder: RunFolder, *, dumps: bool = False) -> tuple[list[ArchivedFile], list[str]]:
    """Return the members of a run's archive, and what is left out; nothing is written.

    Flight-recorder dumps are binary and can't be masked: they are included only on request.
    """
    found: list[ArchivedFile] = []
    left_out: list[str] = []
    binary = 0
    for path in _members(folder):
        inside = clean(str(path.relative_to(folder.path)))
        dump = path.parent == folder.flight
        if dump and not dumps:
            binary += 1
            continue
        try:
            raw, masked = _prepare_member(path, dump=dump)
        except OSError as error:
            left_out.append(f"{inside}: can't be read: {error.strerror}")
            continue
        if len(raw) > _MEMBER_LIMIT:
            left_out.append(f"{inside}: larger than {_MEMBER_LIMIT >> 20} MiB")
            continue
        found.append(ArchivedFile(path, inside, len(raw), masked, dump))
    if binary:
        left_out.append(f"{binary} flight-recorder dump(s); --dumps takes them in as they are")
    return found, left_out


def archive(folder: RunFolder, members: Sequence[ArchivedFile], target: Path | None = None) -> Path:
    """Write one archive of those files with secrets masked: a new file with mode 0600.

    Raises:
        OSError: it can't be written, or exists.

    """
    name = clean(folder.path.resolve().name) or "run"
    target = target or Path(f"dtdebug-{name}.tar.gz")
    handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "wb") as file, tarfile.open(fileobj=file, mode="w:gz") as tar:
        for member in members:
            with suppress(OSError):  # it is gone since
                raw, changed = _prepare_member(member.path, dump=member.binary)[0], int(member.path.stat().st_mtime)
                info = tarfile.TarInfo(f"{name}/{member.inside}")
                info.size, info.mode, info.mtime = len(raw), 0o600, changed
                tar.addfile(info, io.BytesIO(raw))
    return target


def _prepare_member(path: Path, *, dump: bool) -> tuple[bytes, int]:
    """Return the contents of a file to send, and the number of secrets masked in it; raises OSError."""
    raw = files.read_start(path, _MEMBER_LIMIT + 1)
    if dump or len(raw) > _MEMBER_LIMIT:
        return raw, 0
    sent = _clean_bytes(raw, is_json=path.suffix == ".json")
    return sent, max(sent.count(MASK.encode()) - raw.count(MASK.encode()), 0)


def _members(folder: RunFolder) -> Iterator[Path]:
    """Yield our own regular files, no links: other files must not get into the archive."""
    parts = (
        (folder.hosts, "*.json"),
        (folder.ranks, "*.json"),
        (folder.stacks, "*.txt"),
        (folder.errors, "*.json"),
        (folder.flight, "*"),
    )
    ours: Sequence[Path] = (
        folder.path / "run.json", folder.verdict, *folder.outputs(),
        *(path for part, names in parts if not part.is_symlink() for path in sorted(part.glob(names))),
    )  # fmt: skip
    yield from (path for path in ours[:_MEMBERS] if path.is_file() and not path.is_symlink())


def _clean_bytes(raw: bytes, *, is_json: bool) -> bytes:
    if is_json:
        with suppress(ValueError, RecursionError):
            return msgspec.json.encode(_mask_value(msgspec.json.decode(raw)))
    return clean(raw.decode(errors="replace")).encode()


def _mask_value(value: Any, name: str = "") -> Any:
    """Mask secrets in a decoded value: escaped quotes would hide them in JSON text, and a key may reveal one."""
    if isinstance(value, str):
        text = clean(value)
        return mask(f"{name}={text}").removeprefix(f"{name}=") if name else text
    if isinstance(value, dict):
        return {clean(key): _mask_value(inner, key) for key, inner in value.items()}
    if isinstance(value, list):
        return [_mask_value(inner, name) for inner in value]
    return value
