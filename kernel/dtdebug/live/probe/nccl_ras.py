"""Asks the RAS subsystem of NCCL, which each process of a job runs, on this host's loopback.

Only the requests that NVIDIA documents are sent: TIMEOUT, SET FORMAT and STATUS.
https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting/ras.html
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from dtdebug.recorded.nccl_ras import RasError, Status, read_status
from dtdebug_taxonomy.model.ranks import RankState

PORT = 28028
ADDRESS, ENABLED = "NCCL_RAS_ADDR", "NCCL_RAS_ENABLE"
_LOOPBACK = ("localhost", "127.0.0.1", "::1", "")
_CONNECT, _ANSWER = 1.0, 8.0
"""Seconds to connect, and for the answer: RAS itself waits for its peers for some of them."""
_OWN = 5
_LARGEST = 16 << 20
_MOST = 64
"""Maximum number of processes whose libraries are looked at."""


def port_of(states: Iterable[RankState]) -> int | None:
    """Return the port of RAS on this host; None if no living rank here uses NCCL, or RAS is off or elsewhere."""
    here = socket.gethostname()
    for state in [s for s in states if s.alive is not False and s.host in ("", here)][:_MOST]:
        known = {**_environment(state.pid), **state.environment}
        if known.get(ENABLED, "1") == "0" or not (_is_nccl(state) or _has_nccl(state.pid)):
            continue
        host, _, port = known.get(ADDRESS, f"localhost:{PORT}").rpartition(":")
        if host.strip("[]") in _LOOPBACK and port.isascii() and port.isdecimal() and 0 < int(port[:6]) < 65536:
            return int(port[:6])
    return None


def ask(port: int = PORT, *, seconds: float = _ANSWER) -> Status:
    """Return the status that the processes of this host give.

    Raises:
        RasError: nothing listens there, it is something else, or it does not answer in time.

    """
    where = f"port {port} of this host"
    deadline = time.monotonic() + seconds
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=min(_CONNECT, seconds)) as connection:
            stream = _Stream(connection, deadline)
            stream.send(f"TIMEOUT {_OWN}\n")
            if (said := stream.line()) != "OK":
                raise RasError(f"{where}: what listens there is not NCCL's RAS (it said {said[:40]!r})")
            stream.send("SET FORMAT json\n")
            stream.line()  # releases before 2.28.7 do not know it, and go on with text
            stream.send("VERBOSE STATUS\n")
            text = stream.rest()
    except TimeoutError:
        raise RasError(f"{where}: no answer of NCCL's RAS within {seconds:g} s") from None
    except OSError as error:
        raise RasError(f"{where}: NCCL's RAS can't be reached: {error.strerror or error}") from None
    try:
        return read_status(text)[-1]
    except RasError as error:
        raise RasError(f"{where}: the answer {error}") from None


class _Stream:
    """Lines of a connection, read until a deadline."""

    def __init__(self, connection: socket.socket, deadline: float) -> None:
        self._connection, self._deadline, self._data = connection, deadline, b""

    def send(self, text: str) -> None:
        self._connection.settimeout(self._remaining())
        self._connection.sendall(text.encode())

    def line(self) -> str:
        while b"\n" not in self._data and len(self._data) < 4096 and self._receive():
            pass
        line, _, self._data = self._data.partition(b"\n")
        return line.decode(errors="replace").strip()

    def rest(self) -> str:
        while len(self._data) < _LARGEST and self._receive():
            pass
        return self._data.decode(errors="replace")

    def _receive(self) -> bool:
        self._connection.settimeout(self._remaining())
        chunk = self._connection.recv(1 << 16)
        self._data += chunk
        return bool(chunk)

    def _remaining(self) -> float:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left


def _is_nccl(state: RankState) -> bool:
    return "nccl" in state.backend or any("nccl" in group.backend for group in state.groups)


def _has_nccl(pid: int | None) -> bool:
    """True if a process has NCCL's library in its memory."""
    if pid is None:
        return False
    with suppress(OSError):
        return "libnccl" in Path(f"/proc/{pid}/maps").read_text(errors="replace")
    return False


def _environment(pid: int | None) -> dict[str, str]:
    """Return the settings of RAS of a process."""
    if pid is None:
        return {}
    with suppress(OSError):
        rows = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace").split("\0")
        return dict(row.split("=", 1) for row in rows if row.startswith((f"{ADDRESS}=", f"{ENABLED}=")))
    return {}
