"""Channels into an armed process, each with a deadline: its endpoint, its worker server, a stack written on a signal.

The stack is written by faulthandler, which needs no interpreter. HTTP servers are not trusted: a body may be huge,
never end, come byte by byte or not be JSON. The standard client bounds each read, never the whole answer; here the
whole answer has one deadline and one size.
"""

from __future__ import annotations

import io
import os
import re
import signal
import socket
import stat
import time
from contextlib import suppress
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import cast

import msgspec

from dtdebug.live.probe.pyspy import OutsideError, status_of
from dtdebug.live.probe.pyspy_output import FRAMES, frame_of
from dtdebug.storage import unix_sockets
from dtdebug.storage.run_folder import RunFolder
from dtdebug_taxonomy.model.ranks import Frame, RankState

_INTERPRETER = 0.4
"""Share of the time for channels that need the interpreter; the rest is for the others."""
STATE_LIMIT = 4 << 20
"""Maximum size in bytes of a state."""
TRACE_LIMIT = 64 << 20
"""Maximum size in bytes of a flight-recorder trace."""
_LENGTH = re.compile(rb"(?i)\r\ncontent-length:[ \t]*(\d{1,18})\r\n")
_CAUGHT = signal.SIGUSR1 if hasattr(signal, "SIGUSR1") else None
_TRACED_THREAD = re.compile(r"(?:Current t|T)hread 0x[0-9a-f]+.*\(most recent call first\):")
_TRACED_FRAME = re.compile(r'  File "(?P<file>.*)", line (?P<line>\d+) in (?P<function>.*)')


class Request:
    """Request with its number in the folder, its deadlines, and the dumps from before it."""

    def __init__(self, folder: RunFolder | None, timeout: float, *, dumps: bool = True, native: bool = False) -> None:
        began = time.monotonic()
        self.folder = folder
        self.dumps, self.native = dumps, native
        self.deadline = began + timeout
        self.interpreter_deadline = began + _INTERPRETER * timeout
        self.number: int | None = None
        self.refused = "there is no folder of the run"
        self._dumps: dict[str, tuple[int, int]] = {}
        if folder is not None:
            with suppress(OSError):
                self._dumps = {path.name: stamp(path) for path in folder.flight.iterdir()}
            try:
                self.number = folder.request()
            except OSError as error:
                self.refused = f"can't be asked: {error}"

    def seconds_left(self) -> float:
        """Return the seconds until the deadline."""
        return max(0.0, self.deadline - time.monotonic())

    def has_dump(self, rank: int) -> bool:
        """True if a dump of that rank has arrived since the request."""
        path = self.folder.flight / f"rank_{rank}" if self.folder else Path()
        with suppress(OSError):
            return stamp(path) != self._dumps.get(path.name)
        return False


def stamp(path: Path) -> tuple[int, int]:
    """Return a key that changes when the file is replaced or rewritten."""
    status = path.stat()
    return status.st_ino, status.st_mtime_ns


class RoadError(Exception):
    """A channel did not answer; the text gives the reason."""


def endpoint(address: str, token: str, deadline: float) -> RankState:
    """Return the detailed state of the agent's rank at `host:port`.

    Raises:
        RoadError: it can't be reached, does not answer in time or answers something else.

    """
    body = _http(_place(address), "GET", "/state", deadline, limit=STATE_LIMIT, token=token)
    try:
        return msgspec.json.decode(body, type=RankState)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise RoadError(f"answered something other than a rank's record: {error}") from error


def ping(path: Path, deadline: float) -> None:
    """Raise RoadError unless the worker server on that socket answers; it needs no GIL for that."""
    _http(path, "POST", "/handler/ping", deadline, limit=STATE_LIMIT)


def trace(where: Path | str, deadline: float, token: str = "") -> bytes:
    """Return the flight recorder's JSON from a worker server's socket, which needs no GIL, or from an endpoint.

    Raises:
        RoadError: it can't be reached, does not answer in time or answers something that is not a JSON object.

    """
    if isinstance(where, Path):
        body = _http(where, "POST", "/handler/fr_trace_json", deadline, limit=TRACE_LIMIT)
    else:
        body = _http(_place(where), "GET", "/flight", deadline, limit=TRACE_LIMIT, token=token)
    try:
        msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise RoadError(f"answered something other than a trace: {error}") from error
    return body


def _place(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    if not port.isdecimal() or not 0 < int(port[:9]) < 65536:
        raise RoadError(f"{address[:80]!r} is not an address")
    return host.strip("[]"), int(port)


def _http(
    target: Path | tuple[str, int], method: str, path: str, deadline: float, *, limit: int, token: str = ""
) -> bytes:
    """Return the body of an answer with status 200."""
    secret = f"Authorization: Bearer {token}\r\n" if token else ""
    head = f"{method} {path} HTTP/1.1\r\nHost: rank\r\n{secret}Content-Length: 0\r\nConnection: close\r\n\r\n"
    began = time.monotonic()
    try:
        with _connect(target, deadline) as connection:
            connection.sendall(head.encode("latin-1"))
            raw = _receive(connection, deadline, limit)
        response = HTTPResponse(cast("socket.socket", _Answer(raw)))
        response.begin()
        body = response.read()
    except TimeoutError as error:
        raise RoadError(f"no answer in {time.monotonic() - began:.2f} s") from error
    except (OSError, HTTPException, ValueError) as error:
        raise RoadError(f"{error.strerror if isinstance(error, OSError) and error.strerror else error!r}") from error
    if response.status != 200:
        raise RoadError(f"answered {response.status} {response.reason[:80]}")
    return body


def _connect(target: Path | tuple[str, int], deadline: float) -> socket.socket:
    if not isinstance(target, Path):
        return socket.create_connection(target, timeout=_seconds_left(deadline))
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(_seconds_left(deadline))
        with unix_sockets.address(target) as place:
            connection.connect(place)
    except BaseException:
        connection.close()
        raise
    return connection


def _receive(connection: socket.socket, deadline: float, limit: int) -> bytes:
    """Return head and body as received: up to the announced length, else to the end."""
    received, whole = bytearray(), None
    while whole is None or len(received) < whole:
        connection.settimeout(_seconds_left(deadline))
        part = connection.recv(1 << 18)
        if not part:
            break
        received += part
        if whole is None and (end := received.find(b"\r\n\r\n", 0, 1 << 16)) >= 0:
            announced = _LENGTH.search(received, 0, end + 2)
            whole = end + 4 + int(announced[1]) if announced else None
        if max(len(received), whole or 0) > limit:
            raise RoadError(f"answered more than {limit >> 20} MiB")
    return bytes(received)


def _seconds_left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


class _Answer:
    """Bytes that are read like a socket."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw

    def makefile(self, mode: str) -> io.BytesIO:
        return io.BytesIO(self._raw)


def traceback(pid: int, file: Path, deadline: float) -> tuple[Frame, ...]:
    """Return the main thread's stack, innermost last, that faulthandler appends to its announced file on SIGUSR1.

    Signals only a process that catches SIGUSR1: any other would be killed by it.

    Raises:
        OutsideError: it does not catch the signal, may not be signalled or wrote nothing in time.

    """
    if _CAUGHT is None or not _catches(pid, _CAUGHT):
        raise OutsideError("does not catch SIGUSR1")
    try:
        status = file.lstat()
        if not stat.S_ISREG(status.st_mode):
            raise OutsideError("announced what is not a regular file")
        before = status.st_size
        os.kill(pid, _CAUGHT)
        text = _read_appended(file, before, deadline)
    except OSError as error:
        raise OutsideError(str(error)) from error
    stack = parse_traceback(text)
    if not stack:
        raise OutsideError("wrote no traceback")
    return stack


def parse_traceback(text: str) -> tuple[Frame, ...]:
    """Return the stack of the oldest thread, the main one, in faulthandler's text; innermost last."""
    stack: list[Frame] = []
    for line in text.splitlines():
        if _TRACED_THREAD.match(line):
            stack = []
        elif found := _TRACED_FRAME.match(line):
            stack.append(frame_of(found["file"], int(found["line"][:9]), found["function"]))
    return tuple(reversed(stack[:FRAMES]))


def _read_appended(file: Path, before: int, deadline: float) -> str:
    """Return the text written after `before`, once no more is added."""
    size, last = before, time.monotonic()
    while time.monotonic() < deadline:
        now = file.stat().st_size
        if now != size:
            size, last = now, time.monotonic()
        elif size > before and time.monotonic() - last > 0.05:
            break
        time.sleep(0.01)
    with file.open("rb") as opened:
        opened.seek(before)
        return opened.read(1 << 20).decode(errors="replace")


def _catches(pid: int, number: int) -> bool:
    return bool(int(status_of(str(pid)).get("SigCgt", "0"), 16) >> (number - 1) & 1)
