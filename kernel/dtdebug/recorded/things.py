"""Recognises what a user names: logs, runs, archives, dumps, traces, answers, programs, processes, a description.

Files are recognised by what is in them, not by their names; names count only for programs, and where a file is empty.
"""

from __future__ import annotations

import os
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from io import BufferedReader
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple

import msgspec

from dtdebug.errors import UsageError
from dtdebug.privacy.sanitize import one_line
from dtdebug.recorded.curves.forms import form, holds_metrics
from dtdebug.recorded.log_files import object_store
from dtdebug.recorded.log_files.excerpt import LogError, refuse_binary
from dtdebug.storage import safe_open

Kind = Literal[
    "process", "run", "archive", "answer", "recording", "dump", "dumps", "trace", "traces", "stacks", "ras", "notebook",
    "program", "log", "logs", "curves", "words",
]  # fmt: skip


class Thing(NamedTuple):
    """One thing that the user named."""

    name: str
    """As it was given; for `words`, the words themselves."""
    kind: Kind
    words: str
    """Its kind in words, to follow "reading NAME as"."""
    files: tuple[str, ...] = ()
    """For some files of a folder: these."""
    is_guess: bool = True
    """False if nothing else is likely: a user need not be told what it was taken for."""

    @property
    def path(self) -> Path:
        """The file or folder."""
        return Path(self.name)


_HEAD, _WHOLE, _FILES, _DEPTH = 64 << 10, 32 << 20, 4096, 4
"""Bytes that tell what a file is, maximum size of JSON that is read as a whole, files of a folder that are opened."""
_BEGINNING = 1 << 10
"""Bytes in which stacks of another program begin."""
_MAGIC = (
    (b"\x89PNG", "a picture"), (b"\xff\xd8\xff", "a picture"), (b"GIF8", "a picture"), (b"BM", "a picture"),
    (b"RIFF", "a picture or sound"), (b"\x7fELF", "a program or core dump"), (b"PK\x03\x04", "a zip file"),
    (b"%PDF", "a PDF"), (b"\x93NUMPY", "an array of NumPy"), (b"SQLite format 3", "a database"),
)  # fmt: skip
_GZIP, _TAR = b"\x1f\x8b", b"ustar"
_COMPRESSED = (b"\x28\xb5\x2f\xfd", b"\xfd7zXZ\0", b"BZh")
"""Beginnings of files of zstd, xz and bzip2."""
_PICKLE = re.compile(rb"\x80[\x02-\x05](?:\x95.{8})?(?:\x94)?[}\]]", re.DOTALL)
_DUMP_KEYS = ("pg_config", "pg_status", "entries")
_OF_ARCHIVE = re.compile(r"[^/]{1,255}/(?:run|verdict|ranks/[^/]{1,255}|hosts/[^/]{1,255})\.json\Z")
_OF_LOGS = (".log", ".out", ".err")
_PROGRAMS = (".py", ".ipynb", ".sbatch", ".slurm")
_BATCH = re.compile(rb"(?m)\A#!.{0,200}\n(?:.{0,400}\n){0,40}?#(?:SBATCH|PBS|\$ |BSUB) ")
_PRINTED = re.compile(
    rb"Traceback \(|\d\d:\d\d:\d\d|\[rank\d|NCCL (?:INFO|WARN)"
    rb"|(?i:\b(?:step|epoch|iter(?:ation)?|loss)\b[ =:\[]{1,3}\d)"
)
"""Text that a job has printed, as opposed to notes and lists of packages beside a program."""
_OF_TRAINING = re.compile(rb"Traceback \(|\[rank\d|NCCL (?:INFO|WARN)|(?i:\b(?:epoch|iter|loss)\b[ =:\[]{1,3}\d)")


def recognise(words: Sequence[str]) -> list[Thing]:
    """Return what the words name, each once.

    Raises:
        UsageError: one of them names nothing, or what can't be read as anything.

    """
    found = [thing for word in words for thing in _recognise(word)]
    return list(dict.fromkeys(found))


def _recognise(word: str) -> Iterator[Thing]:
    if word == "-":
        yield Thing("-", "log", "the output of a job, on standard input", is_guess=False)
    elif object_store.is_address(word):
        yield Thing(word, "logs", "logs of a job")
    elif _is_there(word):
        yield from _in_folder(Path(word)) if Path(word).is_dir() else (_file(word),)
    elif word.isascii() and word.isdecimal():
        yield Thing(word, "process", "a running process")
    elif any(sign in word for sign in "*?[") and (names := _matching(word)):
        yield from recognise(names)
    elif word.startswith(("https://", "http://")) and len(word.split()) == 1:
        url = one_line(word, 200)
        raise UsageError(f"{url}: dtdebug opens no web address; give it the text: curl -sL {url} | dtdebug -")
    elif len(word.split()) > 1:
        yield Thing(word, "words", "what you see")
    else:
        raise UsageError(f"{one_line(word, 200)}: no such file, folder or process; put what you see in quotes")


def _is_there(word: str) -> bool:
    """True for a file or folder, even a link to nothing; raises UsageError if this user may not look."""
    try:
        os.lstat(word)
    except PermissionError as error:
        raise UsageError(f"{one_line(word, 200)}: can't be read: {error.strerror}") from None
    except (OSError, ValueError):
        return False
    return True


def _matching(pattern: str) -> list[str]:
    import glob

    from dtdebug.recorded.log_files.sources import MOST_STARS

    if pattern.count("**") > MOST_STARS:
        raise UsageError(f"{pattern[:80]}: has more than {MOST_STARS} times `**`; one finds files at any depth")
    found = glob.iglob(pattern, recursive=True)  # noqa: PTH207 - a pattern may begin at the root
    return sorted(islice(found, 1 << 16))[:4096]


def _file(name: str) -> Thing:
    """Return what a file holds; raises UsageError if that is nothing to read."""
    shown = one_line(name, 200)
    if not Path(name).exists():
        raise UsageError(f"{shown}: is a link to nothing")
    if not Path(name).is_file():  # opening a pipe and closing it would end its writer
        return Thing(name, "log", "the output of a job")
    try:
        with safe_open.log(name) as file:
            head = file.read(_HEAD)
            size = os.fstat(file.fileno()).st_size
            if head[:2] == _GZIP:
                file.seek(0)
                return _gzip_contents(name, file, size)
            if (known := _by_beginning(name, head)) is not None:
                return known
            if head[:1] == b"{" and (found := _json(name, head, file, size)) is not None:
                return found
    except OSError as error:
        raise UsageError(f"{shown}: can't be read: {error.strerror or error}") from None
    if head[257:262] == _TAR or head.startswith(_COMPRESSED):
        return Thing(name, "logs", "an archive of logs" if head[257:262] == _TAR else "a compressed log")
    if what := next((what for magic, what in _MAGIC if head.startswith(magic)), ""):
        raise UsageError(f"{shown}: is not text but {what}; give what the job printed")
    if name.endswith(_PROGRAMS) or _BATCH.match(head):
        return Thing(name, "program", "a program to check")
    try:
        refuse_binary(head[:8192], shown)
    except LogError as error:
        raise UsageError(str(error)) from None
    if seen := _of_living(name, head):
        return seen
    if not name.endswith(_OF_LOGS) and not _PRINTED.search(head) and _is_known(name):
        return Thing(name, "program", "a configuration to check")
    is_guess = not name.endswith((*_OF_LOGS, ".md")) and not _PRINTED.search(head)
    return Thing(name, "log", "the output of a job", is_guess=is_guess)


def _of_living(name: str, head: bytes) -> Thing | None:
    """Return what a file says of running processes: NCCL's view or stacks; None for other text."""
    from dtdebug.recorded import nccl_ras, stack_texts

    if nccl_ras.is_status(head.decode(errors="replace")):
        return Thing(name, "ras", "what NCCL's RAS has printed")
    if stack_texts.is_stacks(head):
        return Thing(name, "stacks", "stacks of processes")
    of_training = _OF_TRAINING.search(head) is not None
    what = "" if of_training else stack_texts.other_program(head[:_BEGINNING].decode(errors="replace"))
    return Thing(name, "stacks", what) if what else None


def _by_beginning(name: str, head: bytes) -> Thing | None:
    """Return what a file holds whose beginning is like that of nothing else."""
    if what := form(head):
        return Thing(name, "curves", what)
    if _PICKLE.match(head) and (b"entries" in head or b"profiling_name" in head):
        return Thing(name, "dump", "a dump of the flight recorder")
    return None


def _is_known(name: str) -> bool:
    from dtdebug_taxonomy.source.kinds import is_known

    return is_known(Path(name).name)


def _gzip_contents(name: str, file: BinaryIO, size: int) -> Thing:
    """Return what a file compressed by gzip holds."""
    import tarfile

    from dtdebug.recorded.nccl_inspector.read import is_recording
    from dtdebug.storage.unpacking import BoundedHeader, GunzippedStream, UnpackedStream

    stream = BufferedReader(UnpackedStream(GunzippedStream(file), size), _HEAD)
    try:
        head = stream.peek(_HEAD)
    except (OSError, zlib.error):
        head = b""
    if head[257:262] == _TAR:
        try:
            with tarfile.open(fileobj=stream, mode="r|", tarinfo=BoundedHeader) as tar:
                inside = [member.name for member in islice(tar, 8)]
        except (OSError, EOFError, ValueError, zlib.error, tarfile.TarError, RecursionError):
            inside = []
        if any(map(_OF_ARCHIVE.match, inside)):
            return Thing(name, "archive", "an archive of `dtdebug report`")
        return Thing(name, "logs", "an archive of logs")
    if b'"traceEvents"' in head:
        return Thing(name, "trace", "a trace of torch.profiler")
    if is_recording(head):
        return Thing(name, "trace", "records of NCCL's Inspector")
    return Thing(name, "logs", "a compressed log")


def _json(name: str, head: bytes, file: BinaryIO, size: int) -> Thing | None:
    """Return what JSON holds: a document, by its keys, or lines of metrics; None for other lines and documents."""
    if (found := _document(name, head, file.read(_WHOLE) if size <= _WHOLE else b"")) is not None:
        return found
    file.seek(max(size - _HEAD, 0))
    is_tracked = not name.endswith(_OF_LOGS) and holds_metrics(head, file.read(_HEAD))
    return Thing(name, "curves", "lines of metrics") if is_tracked else None


def _document(name: str, head: bytes, rest: bytes) -> Thing | None:
    """Return what a JSON document is, by its keys; None for lines of JSON and what is not known."""
    from dtdebug.recorded.job_logs.part import is_part
    from dtdebug.recorded.nccl_inspector.read import is_recording

    if is_part(head):
        return Thing(name, "logs", "a summary of `dtdebug triage --part`")
    if is_recording(head):
        return Thing(name, "trace", "records of NCCL's Inspector")
    keys: Any
    try:
        keys = msgspec.json.decode(head + rest, type=dict[str, msgspec.Raw]).keys()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # too large, cut off, or lines of JSON
        keys = {key for key in ("traceEvents", "nbformat", *_DUMP_KEYS) if f'"{key}"'.encode() in head}
        keys |= {"cells"} if b'"cell_type"' in head else set()
    if "traceEvents" in keys:
        return Thing(name, "trace", "a trace of torch.profiler")
    if "entries" in keys and keys & {"pg_config", "pg_status", "version"}:
        return Thing(name, "dump", "a dump of the flight recorder")
    if {"communicators", "nccl_version"} <= {*keys} or {"event", "peer", "group"} <= {*keys}:
        return Thing(name, "ras", "what NCCL's RAS has printed")
    if "cells" in keys or "nbformat" in keys:
        return Thing(name, "notebook", "a notebook")
    if "verdict" in keys or {"snapshot", "diagnosis"} <= {*keys}:
        return Thing(name, "answer", "a saved answer of dtdebug")
    if {"shell_port", "key"} <= {*keys}:
        return Thing(name, "process", "a running Jupyter kernel")
    return None


def _in_folder(folder: Path) -> Iterator[Thing]:
    """Yield what a folder is, or what its files are.

    Raises:
        UsageError: it can't be listed, or holds nothing to read.

    """
    from dtdebug.storage.run_folder import RunFolder

    name, shown = str(folder), one_line(str(folder), 200)
    try:
        entries = list(islice(os.scandir(folder), 1 << 16))
    except OSError as error:
        raise UsageError(f"{shown}: can't be read: {error.strerror}") from None
    run = RunFolder(folder)
    if run.ranks.is_dir() and (run.verdict.is_file() or run.hosts.is_dir() or (folder / "run.json").is_file()):
        yield Thing(name, "run", "a run of `dtdebug run`")
        return
    if run.path.parent is not None and folder.name == "flight" and RunFolder(folder.absolute().parent).ranks.is_dir():
        yield Thing(name, "dumps", "the dumps of a run")
        return
    if any(entry.name.endswith(".head.jsonl") for entry in entries):
        yield Thing(name, "recording", "a recording of collectives")
        return
    found: dict[Kind, list[str]] = {}
    refused: Counter[str] = Counter()
    files = list(islice(_below(folder), _FILES + 1))
    for file in files[:_FILES]:
        try:
            thing = _file(file)
        except UsageError as error:
            refused[str(error).partition(": ")[2]] += 1
            continue
        found.setdefault(thing.kind, []).append(file)
    for thing in _of_files(name, found, refused):
        is_part = len(files) > _FILES and thing.words[:1].isdecimal()
        yield thing._replace(words=f"more than {thing.words}") if is_part else thing


def _of_files(name: str, found: dict[Kind, list[str]], refused: Counter[str]) -> Iterator[Thing]:
    """Yield what the files of a folder are together."""
    shown = one_line(name, 200)
    if dumps := found.get("dump"):
        if len({os.path.dirname(file) for file in dumps}) == 1:  # noqa: PTH120 - only compared
            yield Thing(os.path.dirname(dumps[0]), "dumps", f"{_count(dumps, 'dump')} of the flight recorder")  # noqa: PTH120
        else:
            yield from (Thing(file, "dump", "a dump of the flight recorder") for file in dumps)
    if traces := found.get("trace"):
        yield Thing(name, "traces", f"{_count(traces, 'trace')} of ranks", tuple(traces))
    yield from (Thing(file, "archive", "an archive of `dtdebug report`") for file in found.get("archive", ()))
    if curves := found.get("curves"):
        yield Thing(name, "curves", _count(curves, "file") + " of metrics", tuple(curves))
    programs = [*found.get("program", ()), *found.get("notebook", ())]
    logs = [file for kind in ("log", "logs") for file in found.get(kind, ())]
    if ras := found.get("ras"):
        yield Thing(name, "ras", _count(ras, "status", "statuses") + " of NCCL's RAS", tuple(ras))
    if stacks := found.get("stacks"):
        yield Thing(name, "stacks", _count(stacks, "file") + " with stacks", tuple(stacks))
    beside = bool(programs or dumps or traces or ras or stacks or curves or found.get("archive"))
    printed = [file for file in logs if not beside or file in found.get("logs", ()) or _is_printed(file)]
    if printed and not traces:
        yield Thing(name, "logs", f"{_count(printed, 'log')} of a job", tuple(printed) if beside else ())
    elif programs and not (dumps or traces or ras or stacks or curves):
        yield Thing(name, "program", f"{_count(programs, 'program')} to check")
    elif not beside:
        what, most = refused.most_common(1)[0] if refused else ("", 0)
        why = f"{most} file{'s' * (most != 1)}, the first: {what}" if what else "holds no file that can be read"
        raise UsageError(f"{shown}: {why if not what else f'holds no log ({why})'}")


def _count(files: Sequence[str], what: str, several: str = "") -> str:
    return f"{len(files)} {what if len(files) == 1 else several or f'{what}s'}"


def _is_printed(file: str) -> bool:
    try:
        with safe_open.log(file) as opened:
            return _PRINTED.search(opened.read(_HEAD)) is not None
    except OSError:
        return False


def _below(folder: Path) -> Iterator[str]:
    """Yield the files of a folder that the readers of logs and programs look at."""
    depth = len(folder.parts)
    for root, folders, files in os.walk(folder):
        folders[:] = sorted(f for f in folders if not f.startswith(".") and f not in {"__pycache__", "node_modules"})
        if len(Path(root).parts) - depth >= _DEPTH:
            folders.clear()
        yield from (f"{root}/{file}" for file in sorted(files) if not file.startswith("."))


def one_plain_log(paths: Sequence[str]) -> str | None:
    """Return the one plain file that the paths of logs come down to; None for several, packed ones and parts."""
    if list(paths) == ["-"]:
        return "-"
    if len(paths) == 1 and os.path.exists(paths[0]) and not (Path(paths[0]).is_file() or Path(paths[0]).is_dir()):  # noqa: PTH110
        return paths[0]
    if len(paths) == 1 and Path(paths[0]).is_file() and Path(paths[0]).suffix in _OF_LOGS:
        return paths[0]
    from dtdebug.recorded.job_logs.part import is_part
    from dtdebug.recorded.log_files.sources import find_logs

    sources, unread = find_logs(list(paths))
    if len(sources) != 1 or unread or sources[0].member or object_store.is_address(sources[0].path):
        return None
    name = sources[0].path
    if name.lower().endswith((".gz", ".zst", ".zstd", ".xz", ".lzma", ".bz2", ".tgz")):
        return None
    with safe_open.log(name) as file:
        return None if is_part(file.read(400)) else name
