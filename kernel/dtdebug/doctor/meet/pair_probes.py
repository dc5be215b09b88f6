"""Probes between two hosts: connection, round trip, large messages.

Each host answers at its own addresses on ephemeral ports, as gloo, NCCL and MPI do; a host that did not reach the
meeting does not know the key of the run and gets no answer.
"""

from __future__ import annotations

import asyncio
import errno
import time
from collections.abc import Sequence
from contextlib import suppress

from msgspec.structs import replace

from dtdebug.doctor.host import routes
from dtdebug.doctor.meet import bandwidth, protocol
from dtdebug.doctor.types import Try

CONNECTING = 3.5
"""Seconds to wait for a connection; a host that does not answer ARP fails after three."""
_ECHO, _LARGE_WAIT, _LIFE = 2.0, 2.5, 20.0
_SMALL, _LARGE = 64, 32 << 10
_ROUNDS = 5
_AT_ONCE = 64
_FIRST = 16
"""Number of peers tried first; if none of them answers, the others are skipped."""
_SEGMENTS = (1348, 1148, 536)


class ProbeServer:
    """Server that answers probes until it is closed."""

    def __init__(self) -> None:
        self.ports: list[tuple[str, int]] = []
        self._key = ""
        self._index = -1
        self._known = asyncio.Event()
        self._servers: list[asyncio.Server] = []
        self._guests = 0

    async def open(self, addresses: Sequence[str]) -> None:
        """Listen at the addresses that can be bound."""
        for address in addresses:
            try:
                server = await asyncio.start_server(self._guest, address, 0, limit=protocol.LINE)
            except OSError:
                continue
            self._servers.append(server)
            self.ports.append((address, server.sockets[0].getsockname()[1]))

    def begin(self, key: str, index: int) -> None:
        """Start answering callers that know the run's key and this host's index."""
        self._key, self._index = key, index
        self._known.set()

    def close(self) -> None:
        """Stop listening."""
        for server in self._servers:
            server.close()

    async def _guest(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._guests += 1
        try:
            if self._guests <= 4 * _AT_ONCE:
                await asyncio.wait_for(self._known.wait(), _ECHO)
                async with asyncio.timeout(_LIFE):
                    await self._answer(reader, writer)
        except (protocol.WireError, OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # cancelled: doctor is ending
        finally:
            self._guests -= 1
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await protocol.serve(reader, writer, self._key, str(self._index))
        if await bandwidth.is_asked(reader, writer, _SMALL):
            await bandwidth.take(reader, writer)
            return
        for size in (*[_SMALL] * (_ROUNDS - 1), _LARGE):
            writer.write(await reader.readexactly(size))
            await writer.drain()


async def probe(peers: Sequence[tuple[int, str, int]], key: str) -> list[Try]:
    """Probe (index, address, port) of each peer."""
    turns = asyncio.Semaphore(_AT_ONCE)

    async def one(index: int, address: str, port: int) -> Try:
        async with turns:
            found = await _one(index, address, port, key)
            return replace(found, source=routes.source(address))

    first = (
        [p for p in peers if p[0] in dict.fromkeys([p[0] for p in peers][:_FIRST])]
        if len(peers) > 4 * _FIRST
        else peers
    )
    done = await asyncio.gather(*(one(*p) for p in first))
    rest = [p for p in peers if p not in set(first)] if len(first) < len(peers) else []
    if rest and any(t.result == "ok" for t in done):
        done += await asyncio.gather(*(one(*p) for p in rest))
    return list(done)


async def _one(index: int, address: str, port: int, key: str) -> Try:
    try:
        reader, writer = await protocol.connect(address, port, CONNECTING)
    except (OSError, TimeoutError) as error:
        return Try(node=index, address=address, result=error_word(error))
    try:
        await protocol.call(reader, writer, key, str(index))
        least = await _small(reader, writer)
        large = await _large(reader, writer)
    except protocol.WireError as error:
        return Try(
            node=index, address=address, result="other" if error.why in ("token", "version", "other") else "timeout"
        )
    except (OSError, TimeoutError, asyncio.IncompleteReadError):
        return Try(node=index, address=address, result="timeout")
    finally:
        writer.close()
    passes = 0 if large else await _segment(index, address, port, key)
    return Try(node=index, address=address, milliseconds=round(least * 1000, 3), large=large, passes=passes)


async def _small(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> float:
    """Return the shortest of several round trips in seconds."""
    least = float("inf")
    for _ in range(_ROUNDS):
        began = time.perf_counter()
        writer.write(b"x" * _SMALL)
        await asyncio.wait_for(reader.readexactly(_SMALL), _ECHO)
        least = min(least, time.perf_counter() - began)
    return least


async def _large(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    writer.write(b"x" * _LARGE)
    try:
        await asyncio.wait_for(reader.readexactly(_LARGE), _LARGE_WAIT)
    except (TimeoutError, OSError, asyncio.IncompleteReadError):
        return False
    return True


async def _segment(index: int, address: str, port: int, key: str) -> int:
    """Return the largest segment size in bytes that passes, or 0."""
    for size in _SEGMENTS:
        with suppress(OSError, TimeoutError, protocol.WireError, asyncio.IncompleteReadError):
            reader, writer = await protocol.connect(address, port, CONNECTING, segment=size)
            try:
                await protocol.call(reader, writer, key, str(index))
                await _small(reader, writer)
                if await _large(reader, writer):
                    return size
            finally:
                writer.close()
    return 0


def error_word(error: BaseException) -> str:
    """Return an error of a connection as one word."""
    if isinstance(error, TimeoutError):
        return "timeout"
    if isinstance(error, ConnectionRefusedError):
        return "refused"
    if getattr(error, "errno", None) in (
        errno.ENETUNREACH,
        errno.EHOSTUNREACH,
        errno.EACCES,
        errno.ENETDOWN,
        errno.EPERM,
    ):
        return "unreachable"
    return "error"
