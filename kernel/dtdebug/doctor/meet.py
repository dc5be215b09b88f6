"""The meeting of all hosts where the job itself would meet: one host collects, the others come, all get the answer."""

from __future__ import annotations

import asyncio
import errno
import secrets
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from dtdebug.doctor import bulk, names, pairs, resources, software, wire
from dtdebug.doctor.facts import MOST_HOSTS, Bulk, Came, HostReport, Meeting, Report, Stranger, Try
from dtdebug.doctor.untrusted import tidied

PAUSE = 0.2
_BACKLOG, _GUESTS = 2048, 4096
"""Hosts that may come at one moment, and connections that may be open before they have proved anything."""
_PROBING, _SAYING = 16.0, 5.0
"""Seconds that probes, and a message, may take."""
_FILES_ASKED, _ADDRESSES = 8, 6
_MANY, _ALL = 64, 256
"""Hosts from which on other addresses are tried only where all of the first fail; up to which all pairs are tried."""
Judge = Callable[[list[Came], list[Stranger], float], Report]


class _Peer(msgspec.Struct, kw_only=True):
    """A host as the others are told of it."""

    ports: list[tuple[str, int]] = []
    main: list[str] = []
    """The addresses that gloo and NCCL will take, and that by which it came."""


class _Row(msgspec.Struct, kw_only=True):
    tries: list[Try] = []
    lines: dict[str, list[str]] = {}


def collects(look: HostReport) -> bool:
    """All meet at this host."""
    launch = look.launch
    if launch.node is not None and launch.backend in ("static", "env", "mpi", "ray"):
        return launch.node == 0
    return look.owns or (look.takes_itself and all(names.is_loopback(a) for a in look.endpoint.addresses))


async def collect(
    look: HostReport, token: str, wait: float, judge: Judge, *, heavy: bool = False
) -> tuple[Meeting, Report | None]:
    """The side where all meet: waits for the hosts, has them probe each other, judges, and tells them."""
    hub = _Hub(look, token, heavy=heavy)
    try:
        await hub.open()
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            return Meeting(result="error", words=error.strerror or str(error)), None
        return Meeting(result="taken", holder=resources.port_holder(look.launch)), None
    try:
        return Meeting(result="hub"), await hub.run(wait, judge)
    finally:
        await hub.close()


class _Hub:
    """All that came."""

    def __init__(self, look: HostReport, token: str, *, heavy: bool) -> None:
        self._look, self._token, self._heavy = look, token, heavy
        self._came: list[Came] = []
        self._channels: list[wire.ProvenConnection | None] = []
        self._strangers: dict[str, Stranger] = {}
        self._full = asyncio.Event()
        self._servers: list[asyncio.Server] = []
        self._closed = False
        self._guests: dict[asyncio.StreamWriter, None] = {}
        """Who has not proved anything yet, the first to come first."""
        self._answering = pairs.Answering()

    async def open(self) -> None:
        """Listens at the port of the job, at all addresses, as torch's store does; raises OSError."""
        plugs = []
        for family, address in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):  # noqa: S104 - as the job will
            plug = socket.socket(family, socket.SOCK_STREAM)
            plugs.append(plug)
            try:
                plug.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                plug.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, wire.SEGMENT)
                if family == socket.AF_INET6:
                    plug.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                plug.bind((address, self._look.launch.port or 0))
            except OSError as error:
                plug.close()
                plugs.remove(plug)
                if family == socket.AF_INET or error.errno == errno.EADDRINUSE:
                    for other in plugs:
                        other.close()
                    raise
        self._servers = [
            await asyncio.start_server(self._guest, sock=s, limit=wire.LINE, backlog=_BACKLOG) for s in plugs
        ]
        await self._answering.open(_addresses(self._look))
        here = msgspec.structs.replace(self._look, ports=tuple(self._answering.ports))
        self._came.append(Came(look=here, node=here.launch.node, address=(here.endpoint.addresses or ("",))[0]))
        self._channels.append(None)

    async def close(self) -> None:
        """Closes all sockets."""
        self._closed = True
        self._answering.close()
        for server in self._servers:
            server.close()
        await asyncio.gather(*(c.close() for c in self._channels if c is not None))

    async def run(self, wait: float, judge: Judge) -> Report:
        """From the first host that comes to the answer that all get."""
        began = time.monotonic()
        if len(self._came) >= self._look.launch.nodes:
            self._full.set()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._full.wait(), wait)
        self._closed = True
        key = secrets.token_hex(16)
        self._answering.begin(key, 0)
        differing = _differing([c.look for c in self._came])
        count, every = len(self._came), [_peer(c) for c in self._came]
        partners = [[(j, every[j]) for j in peers(i, count)] for i in range(count)]
        rows = [
            self._ask(i, {"key": key, "index": i, "roster": partners[i], "files": differing}) for i in range(1, count)
        ]
        mine = _tries(partners[0], key)
        done = await asyncio.gather(mine, *rows)
        for came, row in zip(self._came, done, strict=True):
            came.tries = row if isinstance(row, list) else row.tries if row else []
            came.lines = row.lines if isinstance(row, _Row) else {}
        self._came[0].lines = {f: software.lines(self._look.launch.program, f) for f in differing}
        if self._heavy and count > 1:
            for offset in bulk.offsets(count):
                await self._round(offset, key)
        report = judge(self._came, list(self._strangers.values()), time.monotonic() - began)
        await asyncio.gather(*(self._tell(c, report) for c in self._channels if c is not None))
        return report

    async def _ask(self, index: int, body: dict[str, Any]) -> _Row | None:
        channel = self._channels[index]
        assert channel is not None  # noqa: S101 - only this host has none
        try:
            await channel.send(body, _SAYING)
            return msgspec.convert(await channel.receive(_PROBING), _Row)
        except (wire.WireError, msgspec.ValidationError):
            return None

    async def _round(self, offset: int, key: str) -> None:
        """Each host sends much to the one so many places on, by the way by which that came."""
        count = len(self._came)

        def target(index: int) -> tuple[int, str, int] | None:
            peer = (index + offset) % count
            came = self._came[peer]
            reached = [t.address for t in self._came[index].tries if t.node == peer and t.result == "ok"]
            ports = dict(came.look.ports)
            return next(((peer, a, ports[a]) for a in reached if a in ports), None)

        async def one(index: int) -> None:
            to, channel = target(index), self._channels[index]
            if to is None or self._came[index].look.version != self._look.version:
                return
            if channel is None:
                self._came[index].bulk.append(await bulk.send(*to, key))
                return
            try:
                await channel.send({"bulk": to}, _SAYING)
                self._came[index].bulk.append(msgspec.convert(await channel.receive(_PROBING), Bulk))
            except (wire.WireError, msgspec.ValidationError):
                return

        for came in self._came:
            came.bulk = [*came.bulk]
        await asyncio.gather(*(one(i) for i in range(count)))

    async def _tell(self, channel: wire.ProvenConnection, report: Report) -> None:
        with suppress(wire.WireError):
            await channel.send(report, _SAYING)

    async def _guest(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while len(self._guests) >= _GUESTS:  # who only connects must keep no host away
            next(iter(self._guests)).transport.abort()
            del self._guests[next(iter(self._guests))]
        self._guests[writer] = None
        address = str(writer.get_extra_info("peername")[0]).removeprefix("::ffff:")
        try:
            if self._closed:
                writer.close()
                return
            channel = await wire.serve(reader, writer, self._token)
            self._guests.pop(writer, None)
            body = await channel.receive(_SAYING)
            offset = float(body["time"]) - time.time()
            came = Came(
                look=tidied(msgspec.convert(body["look"], HostReport)), node=None, address=address, offset=offset
            )
            came.node = came.look.launch.node
        except wire.WireError as error:
            if len(self._strangers) < 64 and (error.why == "token" or error.release):
                self._strangers[address] = Stranger(address, error.why, error.release)
            writer.close()
            return
        except (OSError, KeyError, TypeError, ValueError, asyncio.CancelledError):  # nothing of ours; or all is over
            writer.close()
            return
        finally:
            self._guests.pop(writer, None)
        if self._closed or len(self._came) >= MOST_HOSTS:
            writer.close()
            return
        self._came.append(came)
        self._channels.append(channel)
        if len(self._came) >= self._look.launch.nodes:
            self._full.set()


async def come(look: HostReport, token: str, wait: float) -> tuple[Meeting, Report | None]:
    """The side that comes: tries until it is let in or the time is over, probes, and gets the answer."""
    began, tries, last = time.monotonic(), 0, Meeting(result="timeout")
    if not look.endpoint.addresses:
        return Meeting(result="unresolved", words=look.endpoint.error), None
    answering = pairs.Answering()
    await answering.open(_addresses(look))
    try:
        while (left := wait - (time.monotonic() - began)) > 0:
            tries += 1
            address = look.endpoint.addresses[(tries - 1) % min(4, len(look.endpoint.addresses))]
            try:
                reader, writer = await wire.connect(
                    address, look.launch.port or 0, min(pairs.CONNECTING, left), segment=wire.SEGMENT
                )
            except (OSError, TimeoutError) as error:
                word = pairs.error_word(error)
                if not (word == "timeout" and left < 1 and last.words):
                    last = Meeting(
                        result=word, words=f"{address}: {getattr(error, 'strerror', '') or 'no answer'}", tries=tries
                    )
                await asyncio.sleep(PAUSE)
                continue
            try:
                channel = await wire.call(reader, writer, token)
                hello = msgspec.structs.replace(look, ports=tuple(answering.ports))
                await channel.send({"look": hello, "time": time.time()}, _SAYING)
                return await _inside(look, channel, answering, wait)
            except wire.WireError as error:
                why = {"token": "token", "lost": "lost", "version": "version"}.get(error.why, "other")
                words = f"{address} answers, but not as dtdebug doctor does"
                if error.release:
                    words = f"{address} has dtdebug {error.release}, {look.host} {look.version}"
                last = Meeting(result=why, words=words, tries=tries)
                if why in ("token", "version"):
                    break
                await asyncio.sleep(PAUSE)
            finally:
                writer.close()
    finally:
        answering.close()
    return msgspec.structs.replace(last, tries=tries, seconds=round(time.monotonic() - began, 1)), None


async def _inside(
    look: HostReport, channel: wire.ProvenConnection, answering: pairs.Answering, wait: float
) -> tuple[Meeting, Report | None]:
    try:
        body = await channel.receive(wait + _SAYING)
        key, index = str(body["key"]), int(body["index"])
        partners = msgspec.convert(body["roster"], list[tuple[int, _Peer]])[:MOST_HOSTS]
        files = [str(f) for f in body["files"]][:_FILES_ASKED]
    except (KeyError, TypeError, ValueError):
        raise wire.WireError("other") from None
    answering.begin(key, index)
    tries = await _tries(partners, key)
    known = [f for f in files if f in look.files]  # nothing else is read on a peer's word
    lines = {f: software.lines(look.launch.program, f) for f in known}
    await channel.send(_Row(tries=tries, lines=lines), _SAYING)
    try:
        body = await channel.receive(_PROBING + 2 * _SAYING)
        while isinstance(body, dict) and "bulk" in body:
            node, address, port = msgspec.convert(body["bulk"], tuple[int, str, int])
            if not any(i == node and [address, port] in [[*p] for p in peer.ports] for i, peer in partners):
                raise wire.WireError("other")  # only those of the roster are called
            await channel.send(await bulk.send(node, address, port, key), _SAYING)
            body = await channel.receive(_PROBING + 2 * _SAYING)
        return Meeting(result="came"), msgspec.convert(body, Report)
    except msgspec.ValidationError:
        raise wire.WireError("version") from None


def peers(index: int, count: int) -> list[int]:
    """Whom a host tries: all; of very many those 1, 2, 4, ... places away on both sides, so that each tries each."""
    if count <= _ALL:
        return [i for i in range(count) if i != index]
    steps = [1 << k for k in range((count - 1).bit_length())]
    return sorted({(index + sign * step) % count for step in steps for sign in (1, -1)} - {index})


async def _tries(partners: Sequence[tuple[int, _Peer]], key: str) -> list[Try]:
    """First the addresses that the libraries and the meeting use; others of a peer only where these fail."""
    wanted = [(i, a, p, a in peer.main) for i, peer in partners for a, p in peer.ports]
    found = await pairs.probe([(i, a, p) for i, a, p, first in wanted if first], key)
    good = {t.node for t in found if t.result == "ok" and t.large}
    bad = {t.node for t in found if t.result != "ok" or not t.large}
    again = bad - good if len(partners) > _MANY else {i for i, _ in partners} - (good - bad)
    return found + await pairs.probe([(i, a, p) for i, a, p, first in wanted if not first and i in again], key)


def _peer(came: Came) -> _Peer:
    look = came.look
    return _Peer(ports=list(look.ports)[:_ADDRESSES], main=[look.gloo.address, look.nccl.address, came.address])


def _addresses(look: HostReport) -> list[str]:
    """Where this host answers probes: where gloo and NCCL will, and at its other addresses."""
    found = [look.gloo.address, look.nccl.address, *names.outward(look.interfaces)]
    return [a for a in dict.fromkeys(found) if a and not names.is_loopback(a)][:_ADDRESSES]


def _differing(looks: list[HostReport]) -> list[str]:
    every = dict.fromkeys(f for look in looks for f in look.files)
    return [f for f in every if len({look.files.get(f) for look in looks if look.files}) > 1][:_FILES_ASKED]
