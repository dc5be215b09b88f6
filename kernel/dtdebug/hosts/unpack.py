"""Archives of runs, read with care: plain files of a run's folder and nothing else, within bounds."""

from __future__ import annotations

import tarfile
import zlib
from pathlib import Path, PurePosixPath

_MEMBER, _ALL, _MEMBERS = 16 << 20, 512 << 20, 6_000
"""Bytes of a file and of all, and files, that are taken from an archive."""
_PARTS = {"ranks": (".json",), "errors": (".json",), "stacks": (".txt",), "hosts": (".json", ".log"), "flight": ("",)}
_TOP = frozenset(("run.json", "verdict.json", "output.log"))


class UnpackError(ValueError):
    """The file is no archive of a run; the text says why, in one line."""


def unpack(archive: Path, target: Path) -> list[str]:
    """Writes the files of a run into a folder that exists; what was left out.

    Raises:
        UnpackError: it can't be read, or holds nothing of a run.

    """
    left_out: list[str] = []
    taken = total = 0
    try:
        with tarfile.open(archive, "r|gz") as tar:  # as a stream: nothing is sought, and a bomb ends with the bound
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
    except (OSError, tarfile.TarError, EOFError, zlib.error, ValueError) as error:
        raise UnpackError(f"is not an archive of `dtdebug report RUN` ({type(error).__name__})") from None
    if not taken:
        raise UnpackError("holds no files of a run")
    return left_out


def _inside(name: str) -> PurePosixPath | None:
    """Where a member belongs in the folder, by a list of what a run's folder holds; None for anything else."""
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
