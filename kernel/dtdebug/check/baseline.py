"""Findings that are known and accepted: a file that a project commits, and fingerprints that survive moved lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Literal

import msgspec

from dtdebug.check.examine_file import CheckFinding
from dtdebug.check.texts import Texts
from dtdebug.errors import UsageError
from dtdebug_taxonomy import named_files

_LARGEST = 64 << 20
"""Maximum size of the file in bytes."""


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, order=True):
    """Finding by its check, file and line, without the line's number."""

    file: str
    """Path from the folder of the baseline, with slashes."""
    check: str
    line_hash: str


class _Row(_Entry, frozen=True, forbid_unknown_fields=True):
    count: int


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: Literal[1]
    findings: list[_Row]


class Baseline:
    """Accepted findings; each entry accepts as many findings as it counts."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._home = file.absolute().parent

    def write(self, findings: Sequence[CheckFinding], texts: Texts) -> None:
        """Write all findings as accepted.

        Raises:
            UsageError: the file can't be written.

        """
        counts = Counter(self._entry(f, texts) for f in findings)
        rows = [_Row(e.file, e.check, e.line_hash, counts[e]) for e in sorted(counts)]
        lines = b",\n".join(map(msgspec.json.encode, rows))  # one each, so that a change is a line of a diff
        if self._file.exists() and not self._file.is_file():  # a pipe would wait for its reader
            raise UsageError(f"check --baseline {self._file}: can't be written: is not a regular file")
        try:
            self._file.write_bytes(b'{"version": 1, "findings": [\n' + lines + b"\n]}\n")
        except OSError as error:
            raise UsageError(f"check --baseline {self._file}: can't be written: {error.strerror}") from None

    def new(self, findings: Sequence[CheckFinding], texts: Texts) -> list[CheckFinding]:
        """Return the findings that are not accepted.

        Raises:
            UsageError: the file can't be read, or is not a baseline.

        """
        try:
            read = msgspec.json.decode(named_files.read_file(self._file, _LARGEST), type=_File)
        except OSError as error:
            raise UsageError(
                f"check --baseline {self._file}: can't be read: {error.strerror}; --write-baseline makes it"
            ) from None
        except msgspec.DecodeError as error:
            raise UsageError(f"check --baseline {self._file}: not a baseline ({error})") from None
        left = Counter({_Entry(r.file, r.check, r.line_hash): r.count for r in read.findings})
        found = []
        for finding in findings:
            entry = self._entry(finding, texts)
            if left[entry] > 0:
                left[entry] -= 1
            else:
                found.append(finding)
        return found

    def _entry(self, finding: CheckFinding, texts: Texts) -> _Entry:
        return _Entry(_path_from(self._home, finding.path), finding.id, _line_hash(finding, texts))


def fingerprints(findings: Sequence[CheckFinding], texts: Texts) -> Iterator[str]:
    """Yield one for each finding: it stays the same if lines are added elsewhere in the file."""
    seen: Counter[str] = Counter()
    for f in findings:
        named = f"{f.id}\0{_path_from(Path.cwd(), f.path)}\0{_line_hash(f, texts)}"
        seen[named] += 1
        yield f"{blake2b(named.encode(errors='surrogateescape'), digest_size=8).hexdigest()}:{seen[named]}"


def _path_from(home: Path, path: str) -> str:
    """Return a path from a folder if it is below it, else as an absolute one."""
    absolute = Path(path).absolute()
    return (absolute.relative_to(home) if absolute.is_relative_to(home) else absolute).as_posix()


def _line_hash(finding: CheckFinding, texts: Texts) -> str:
    """Return a digest of the line without its indentation and runs of blanks."""
    line = " ".join(texts.line(finding).split())
    return blake2b(line.encode(errors="surrogateescape"), digest_size=8).hexdigest()
