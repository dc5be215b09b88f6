"""Exchanges reports through a shared folder (`--folder DIR`) for hosts that cannot connect.

Each host writes one file, readable by its user alone, with a code that requires the token, and removes it at its end.
The other hosts' files are read with the same limits as a message; nothing in them is executed.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePath

import msgspec

from dtdebug.doctor.meet.untrusted import sanitize_report
from dtdebug.doctor.types import MOST_HOSTS, HostReport, Meeting
from dtdebug.errors import UsageError

_FORM = ".json"
_OLD = 180.0
"""Seconds, by the file server's clock, after which a file belongs to another run."""
_LIMIT = 1 << 20
PAUSE = 0.5


class HostFile(msgspec.Struct, frozen=True, kw_only=True):
    """Contents of a host's file."""

    look: HostReport
    meeting: Meeting = Meeting()


class Folder:
    """Files of one run in the shared folder."""

    def __init__(self, place: Path, token: str, look: HostReport) -> None:
        """Create the folder of the run; raises UsageError if that fails."""
        program = PurePath(look.launch.program).name  # the key must not depend on anything in which hosts may differ
        self._key = hashlib.sha256(f"{token}\0{program}".encode()).digest()
        self._home = place / f"dtdebug-doctor-{self._key.hex()[:16]}"
        self._own = self._home / f"{secrets.token_hex(8)}{_FORM}"
        self._seconds = 0.0
        try:
            with suppress(FileExistsError):
                self._home.mkdir(mode=0o700)
            if self._home.lstat().st_uid != os.getuid() or not stat.S_ISDIR(self._home.lstat().st_mode):
                raise UsageError(f"doctor --folder {place}: {self._home.name} in it belongs to another user")
        except OSError as error:
            raise UsageError(f"doctor --folder {place}: can't be written: {error.strerror}") from None

    def write(self, look: HostReport, meeting: Meeting) -> None:
        """Replace this host's file; raises OSError."""
        data = msgspec.json.encode(HostFile(look=look, meeting=meeting))
        draft = self._own.with_suffix(".draft")
        handle = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(self._code(data) + b" " + data)
        draft.rename(self._own)
        self._seconds = self._own.stat().st_mtime

    def read(self) -> list[HostFile]:
        """Return all hosts' files, this host's included; skip broken files and those of other users or runs."""
        return list(self._read())

    def _read(self) -> Iterator[HostFile]:
        with suppress(OSError):
            for path in sorted(self._home.iterdir())[:MOST_HOSTS]:
                if path.suffix != _FORM:
                    continue
                with suppress(OSError, msgspec.MsgspecError, UnicodeDecodeError):
                    yield from self._one(path)

    def _one(self, path: Path) -> Iterator[HostFile]:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(handle, "rb") as file:
            about = os.fstat(file.fileno())
            if about.st_uid != os.getuid() or abs(about.st_mtime - self._seconds) > _OLD:
                return
            code, _, data = file.read(_LIMIT).partition(b" ")
        if hmac.compare_digest(code, self._code(data)):
            said = msgspec.json.decode(data, type=HostFile)
            yield HostFile(look=sanitize_report(said.look), meeting=said.meeting)

    def wait(self, said: HostFile, count: int, until: float) -> list[HostFile]:
        """Return all files once `count` hosts report a result, or at `until` on the monotonic clock.

        This host rewrites its own file each time: an NFS client rereads a folder after it has changed it.
        """
        while True:
            with suppress(OSError):
                self.write(said.look, said.meeting)
            found = self.read()
            if sum(bool(s.meeting.result) for s in found) >= count or time.monotonic() > until:
                return found
            time.sleep(PAUSE)

    def close(self) -> None:
        """Remove this host's file, and the folder after the last one."""
        for path in (self._own, self._own.with_suffix(".draft")):
            with suppress(OSError):
                path.unlink()
        with suppress(OSError):
            self._home.rmdir()

    def _code(self, data: bytes) -> bytes:
        return hmac.new(self._key, data, hashlib.sha256).hexdigest().encode()
