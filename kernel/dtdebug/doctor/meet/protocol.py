"""Protocol between hosts: lines of JSON, each with a code that requires the token; small, bounded, timed.

The server begins with a nonce, and the caller answers with its own; both prove that they know the token. Nothing that
a peer sends is run or written; a line has at most a megabyte, and each wait has a limit.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import re
import secrets
import socket
from contextlib import suppress
from typing import Any

import msgspec

from dtdebug_taxonomy import __version__

_NAME = b"dtdebug-doctor "
GREETING = _NAME + b"1 "
LINE = 1 << 20
"""Maximum bytes of a line."""
SEGMENT = 536
"""Segment size of doctor's connections in bytes: small enough to pass where larger segments are lost."""
_GREETING_WAIT = 3.0
_RELEASE = re.compile(rb"dtdebug-doctor (\d{1,4}) ([0-9A-Za-z.+-]{1,40})\n")
"""Protocol and dtdebug release that both sides send if their protocols differ."""


class WireError(Exception):
    """The peer is not a valid partner: `why` is other, silent, late, token, version or lost.

    `release`: for version, the release that the peer claims, unproven; empty if it sends none.
    """

    def __init__(self, why: str, release: str = "") -> None:
        super().__init__(why)
        self.why, self.release = why, release


class ProvenConnection:
    """Connection whose ends have both proved that they know the token."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, key: bytes, side: bytes) -> None:
        self._reader, self._writer, self._key, self._side = reader, writer, key, side
        self._sent = self._received = 0

    async def send(self, body: Any, wait: float) -> None:
        """Send one message; raises WireError."""
        data = msgspec.json.encode(body)
        mac = _mac(self._key, self._side, b"%d" % self._sent, data)
        self._sent += 1
        try:
            self._writer.write(mac + b" " + data + b"\n")
            await asyncio.wait_for(self._writer.drain(), wait)
        except (OSError, TimeoutError):
            raise WireError("lost") from None

    async def receive(self, wait: float) -> Any:
        """Return the next message; raises WireError."""
        line = await _line(self._reader, wait)
        mac, _, data = line.rstrip(b"\n").partition(b" ")
        other = b"s" if self._side == b"c" else b"c"
        if not hmac.compare_digest(mac, _mac(self._key, other, b"%d" % self._received, data)):
            raise WireError("token")
        self._received += 1
        try:
            return msgspec.json.decode(data)
        except msgspec.DecodeError:
            raise WireError("other") from None

    async def close(self) -> None:
        """Close the connection."""
        self._writer.close()
        with suppress(Exception):
            await asyncio.wait_for(self._writer.wait_closed(), 1.0)


async def serve(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: str, who: str = ""
) -> ProvenConnection:
    """Greet a caller and return the proven connection; `who` is the identity to prove. Raises WireError."""
    nonce = secrets.token_hex(16).encode()
    writer.write(GREETING + nonce + b"\n")
    line = await _line(reader, _GREETING_WAIT)
    if line.startswith(_NAME):
        with suppress(OSError):
            writer.write(_own_release())
            await writer.drain()
        raise WireError("version", _release(line))
    theirs, _, proof = line.rstrip(b"\n").partition(b" ")
    if len(theirs) != 32:
        raise WireError("other")
    key = _mac(token.encode(), nonce, theirs, who.encode())
    if not hmac.compare_digest(proof, _mac(key, b"caller", b"", b"")):
        with suppress(OSError):
            writer.write(b"token\n")
            await writer.drain()
        raise WireError("token")
    writer.write(_mac(key, b"called", b"", b"") + b"\n")
    return ProvenConnection(reader, writer, key, b"s")


async def call(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: str, who: str = ""
) -> ProvenConnection:
    """Greet the called side and return the proven connection. Raises WireError."""
    try:
        line = await _line(reader, _GREETING_WAIT)
    except WireError as error:
        raise WireError("silent" if error.why == "late" else "other") from None
    if not line.startswith(GREETING):
        if not line.startswith(_NAME):
            raise WireError("other")
        said = b""
        with suppress(WireError, OSError):  # an older peer closes the connection
            writer.write(_own_release())
            said = await _line(reader, _GREETING_WAIT)
        raise WireError("version", _release(said))
    theirs = line[len(GREETING) :].rstrip(b"\n")
    nonce = secrets.token_hex(16).encode()
    key = _mac(token.encode(), theirs, nonce, who.encode())
    writer.write(nonce + b" " + _mac(key, b"caller", b"", b"") + b"\n")
    answer = (await _line(reader, _GREETING_WAIT)).rstrip(b"\n")
    if not hmac.compare_digest(answer, _mac(key, b"called", b"", b"")):
        raise WireError("token")
    return ProvenConnection(reader, writer, key, b"c")


async def connect(
    address: str, port: int, wait: float, *, segment: int = 0
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Open a connection; raises OSError or TimeoutError."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    plug = socket.socket(family, socket.SOCK_STREAM)
    try:
        plug.setblocking(False)
        plug.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if segment:
            plug.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, segment)
        await asyncio.wait_for(asyncio.get_running_loop().sock_connect(plug, (address, port)), wait)
        return await asyncio.open_connection(sock=plug, limit=LINE)
    except BaseException:
        plug.close()
        raise


async def _line(reader: asyncio.StreamReader, wait: float) -> bytes:
    try:
        line = await asyncio.wait_for(reader.readline(), wait)
    except TimeoutError:
        raise WireError("late") from None
    except (OSError, ValueError):  # reset, or longer than a line may be
        raise WireError("lost") from None
    if not line.endswith(b"\n"):
        raise WireError("lost")
    return line


def _own_release() -> bytes:
    return GREETING + __version__.encode() + b"\n"


def _release(line: bytes) -> str:
    found = _RELEASE.fullmatch(line)
    return f"{found[2].decode()} (protocol {found[1].decode()})" if found else ""


def _mac(key: bytes, *parts: bytes) -> bytes:
    text = b"\0".join(parts)
    return hmac.new(key, text, hashlib.sha256).hexdigest().encode()
