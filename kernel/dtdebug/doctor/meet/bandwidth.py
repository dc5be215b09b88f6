"""Measures throughput and retransmissions between hosts (`--heavy`).

In round k each host sends to the host 2**k places on, all at the same time, as in a job, so that a thousand hosts take
ten rounds. A round sends for a fraction of a second and at most 256 MiB.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import time

from dtdebug.doctor.meet import protocol
from dtdebug.doctor.types import Bulk

SENDING = 0.4
"""Seconds during which a round sends."""
_WAIT, _CONNECTING = 4.0, 3.5
_MOST = 256 << 20
_PIECE = 256 << 10
_ASK = b"bulk"
_INFO = 232
_AGAIN_AT, _SENT_AT, _TWICE_AT = 100, 136, 216
"""Offsets of tcpi_total_retrans, tcpi_segs_out and tcpi_dsack_dups in the kernel's struct tcp_info (linux/tcp.h)."""


def offsets(count: int) -> list[int]:
    """Return 1, 2, 4, ... below the number of hosts."""
    return [1 << k for k in range((count - 1).bit_length()) if 1 << k < count]


async def is_asked(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, size: int) -> bool:
    """Echo the first message and return True if it starts a bulk transfer."""
    first = await reader.readexactly(size)
    writer.write(first)
    await writer.drain()
    return first.startswith(_ASK)


async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Read until the sender ends and reply with the number of bytes received."""
    count = 0
    while count <= _MOST + _PIECE and (piece := await reader.read(_PIECE)):
        count += len(piece)
    writer.write(struct.pack("!Q", count))
    await writer.drain()


async def send(node: int, address: str, port: int, key: str) -> Bulk:
    """Send to one peer for one round and return the measured rate and segments."""
    try:
        reader, writer = await protocol.connect(address, port, _CONNECTING)
    except (OSError, TimeoutError):
        return Bulk(node=node)
    try:
        await protocol.call(reader, writer, key, str(node))
        writer.write(_ASK.ljust(64, b"."))
        await asyncio.wait_for(reader.readexactly(64), _WAIT)
        piece, began, count = b"x" * _PIECE, time.perf_counter(), 0
        while count < _MOST and time.perf_counter() - began < SENDING:
            writer.write(piece)
            count += _PIECE
            await asyncio.wait_for(writer.drain(), _WAIT)
        writer.write_eof()
        came = struct.unpack("!Q", await asyncio.wait_for(reader.readexactly(8), _WAIT))[0]
        seconds = time.perf_counter() - began
        again, sent = _segments(writer)
        return Bulk(node=node, rate=round(min(came, count) / seconds / 1e6, 1), again=again, sent=sent)
    except (protocol.WireError, OSError, TimeoutError, asyncio.IncompleteReadError):
        again, sent = _segments(writer)
        return Bulk(node=node, again=again, sent=sent)
    finally:
        writer.close()


def _segments(writer: asyncio.StreamWriter) -> tuple[int, int]:
    """Return (lost, sent) segments of the connection.

    Segments that the receiver reports as duplicates (RFC 2883) were delayed by a busy host, not lost.
    """
    plug: socket.socket | None = writer.get_extra_info("socket")
    try:
        info = plug.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO) if plug is not None else b""
    except OSError:
        info = b""
    again, sent, twice = (
        struct.unpack_from("=I", info, at)[0] if len(info) >= at + 4 else 0 for at in (_AGAIN_AT, _SENT_AT, _TWICE_AT)
    )
    return max(0, again - twice), sent
