"""Unpacks archives of runs defensively: only plain files of a run's folder, within bounds."""

from __future__ import annotations

import io
import os
import tarfile
import zlib
from pathlib import Path, PurePosixPath

from dtdebug.storage import safe_open
from dtdebug.storage.unpacking import BoundedHeader, GunzippedStream, UnpackedStream

_MEMBER, _ALL, _MEMBERS = 16 << 20, 512 << 20, 6_000
"""Maximum bytes of a file and of all files, and number of files, taken from an archive."""
_PARTS = {"ranks": (".json",), "errors": (".json",), "stacks": (".txt",), "hosts": (".json", ".log"), "flight": ("",)}
_TOP = frozenset(("run.json", "verdict.json", "output.log"))


class UnpackError(ValueError):
    """The file is not an archive of a run; the text gives the reason, in one line."""


def unpack(archive: Path, target: Path) -> list[str]:
    """Write the files of a run into an existing folder, and return what was left out.

    Raises:
        UnpackError: it can't be read, or holds nothing of a run.

    """
    left_out: list[str] = []
    taken = total = 0
    try:
        with (
            safe_open.log(archive) as packed,
            io.BufferedReader(UnpackedStream(GunzippedStream(packed), os.fstat(packed.fileno()).st_size)) as stream,
            tarfile.open(fileobj=stream, mode="r|", tarinfo=BoundedHeader) as tar,  # needs no seeking
        ):
            for seen, member in enumerate(tar):
                if seen >= _MEMBERS or total > _ALL:
                    left_out.append("the rest: the archive is too large")
                    break
                inside = _inside(member.name)
                if inside is None or not member.isreg():
                    continue
                if member.size > _MEMBER:
                    left_out.append(f"{inside.name}: larger than {_MEMBER >> 20} MiB")
                    total += member.size
                    continue
                file = tar.extractfile(member)
                if file is None:
                    continue
                path = target / inside
                path.parent.mkdir(mode=0o700, exist_ok=True)
                path.write_bytes(file.read(_MEMBER))
                total += member.size
                taken += 1
    except (OSError, tarfile.TarError, EOFError, zlib.error, ValueError, RecursionError) as error:
        why = (isinstance(error, OSError) and error.strerror) or type(error).__name__
        raise UnpackError(f"is not an archive of `dtdebug report RUN` ({why})") from None
    if not taken:
        raise UnpackError("holds no files of a run")
    return left_out


def _inside(name: str) -> PurePosixPath | None:
    """Return a member's path in the run's folder, by an allow list; None for anything else."""
    run, *parts = PurePosixPath(name).parts or ("/",)
    if run in ("/", "..") or any(
        part in ("..", "/") or part.startswith(".") or "\0" in part or len(part) > 200 for part in parts
    ):
        return None
    if len(parts) == 1 and parts[0] in _TOP:
        return PurePosixPath(parts[0])
    if len(parts) == 2 and parts[0] in _PARTS and parts[1].endswith(_PARTS[parts[0]]):
        return PurePosixPath(*parts)
    return None
