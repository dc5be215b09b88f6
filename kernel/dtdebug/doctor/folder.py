"""A shared folder as a second way for hosts to hear of each other (`--folder DIR`), where they do not meet.

Each host writes one file, readable by its user alone, with a code that only who knows the token can make, and removes
it at its end. What others wrote is read with the same bounds as a message; nothing of it is run.
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

from dtdebug.doctor.facts import MOST_HOSTS, HostReport, Meeting
from dtdebug.doctor.untrusted import tidied
from dtdebug.errors import UsageError

_FORM = ".json"
_OLD = 180.0
"""Seconds, by the file server's clock, after which a file is of another run."""
_LIMIT = 1 << 20
PAUSE = 0.5


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """What a host wrote."""

    look: HostReport
    meeting: Meeting = Meeting()


class Folder:
    """The files of one run."""

    def __init__(self, place: Path, token: str, look: HostReport) -> None:
        """Makes the folder of the run; raises UsageError where that can't be."""
        program = PurePath(look.launch.program).name  # what hosts may differ in must not part them here
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
        """What this host says now, in the place of what it said before; raises OSError."""
        data = msgspec.json.encode(Said(look=look, meeting=meeting))
        draft = self._own.with_suffix(".draft")
        handle = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(self._code(data) + b" " + data)
        draft.rename(self._own)
        self._seconds = self._own.stat().st_mtime

    def read(self) -> list[Said]:
        """What all hosts say, this one among them; what is another user's, of another run or broken is left out."""
        return list(self._read())

    def _read(self) -> Iterator[Said]:
        with suppress(OSError):
            for path in sorted(self._home.iterdir())[:MOST_HOSTS]:
                if path.suffix != _FORM:
                    continue
                with suppress(OSError, msgspec.MsgspecError, UnicodeDecodeError):
                    yield from self._one(path)

    def _one(self, path: Path) -> Iterator[Said]:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(handle, "rb") as file:
            about = os.fstat(file.fileno())
            if about.st_uid != os.getuid() or abs(about.st_mtime - self._seconds) > _OLD:
                return
            code, _, data = file.read(_LIMIT).partition(b" ")
        if hmac.compare_digest(code, self._code(data)):
            said = msgspec.json.decode(data, type=Said)
            yield Said(look=tidied(said.look), meeting=said.meeting)

    def wait(self, said: Said, count: int, until: float) -> list[Said]:
        """What all say once so many have said how they fared, or at a time of the monotonic clock.

        This host says its own again each time: a client of NFS looks at a folder anew after it has changed it itself.
        """
        while True:
            with suppress(OSError):
                self.write(said.look, said.meeting)
            found = self.read()
            if sum(bool(s.meeting.result) for s in found) >= count or time.monotonic() > until:
                return found
            time.sleep(PAUSE)

    def close(self) -> None:
        """Removes what this host wrote, and the folder after the last."""
        for path in (self._own, self._own.with_suffix(".draft")):
            with suppress(OSError):
                path.unlink()
        with suppress(OSError):
            self._home.rmdir()

    def _code(self, data: bytes) -> bytes:
        return hmac.new(self._key, data, hashlib.sha256).hexdigest().encode()
