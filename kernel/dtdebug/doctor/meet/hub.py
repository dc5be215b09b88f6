"""The collecting host: waits for the others, has them probe each other, judges, and sends them the report."""

from __future__ import annotations

import asyncio
import errno
import secrets
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec

from dtdebug.doctor.host import resources, routes, software
from dtdebug.doctor.meet import bandwidth, pair_probes, protocol
from dtdebug.doctor.meet.roster import (
    FILES_ASKED,
    PROBING,
    SAYING,
    PeerResults,
    answering_at,
    peer_of,
    peers,
    try_peers,
)
from dtdebug.doctor.meet.untrusted import sanitize_report
from dtdebug.doctor.report_types import Report
from dtdebug.doctor.types import MOST_HOSTS, Arrival, Bulk, HostReport, Meeting, ReturnRoutes, Stranger

_BACKLOG, _GUESTS = 2048, 4096
"""Maximum simultaneous arrivals, and open connections that are not yet authenticated."""
Judge = Callable[[list[Arrival], list[Stranger], float], Report]


async def collect(
    look: HostReport, token: str, wait: float, judge: Judge, *, heavy: bool = False, alone: float = 0.0
) -> tuple[Meeting, Report | None]:
    """Wait for the hosts, and return the report that all of them get.

    If `alone` is set and no host connects within that many seconds, return no report.
    """
    hub = _Hub(look, token, heavy=heavy)
    try:
        await hub.open()
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            return Meeting(result="error", words=error.strerror or str(error)), None
        return Meeting(result="taken", holder=resources.port_holder(look.launch)), None
    try:
        return Meeting(result="hub"), await hub.run(wait, judge, alone)
    finally:
        await hub.close()


class _Hub:
    """State of the collecting host."""

    def __init__(self, look: HostReport, token: str, *, heavy: bool) -> None:
        self._look, self._token, self._heavy = look, token, heavy
        self._came: list[Arrival] = []
        self._channels: list[protocol.ProvenConnection | None] = []
        self._strangers: dict[str, Stranger] = {}
        self._full = asyncio.Event()
        self._servers: list[asyncio.Server] = []
        self._closed = False
        self._guests: dict[asyncio.StreamWriter, None] = {}
        """Connections that are not yet authenticated, oldest first."""
        self._answering = pair_probes.ProbeServer()
        self._dropped = routes.count_dropped()

    async def open(self) -> None:
        """Listen at the job's port on all addresses, as torch's store does; raises OSError."""
        plugs = []
        for family, address in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):  # noqa: S104 - as the job will
            plug = socket.socket(family, socket.SOCK_STREAM)
            plugs.append(plug)
            try:
                plug.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                plug.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, protocol.SEGMENT)
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
            await asyncio.start_server(self._guest, sock=s, limit=protocol.LINE, backlog=_BACKLOG) for s in plugs
        ]
        await self._answering.open(answering_at(self._look))
        here = msgspec.structs.replace(self._look, ports=tuple(self._answering.ports))
        self._came.append(Arrival(look=here, node=here.launch.node, address=(here.endpoint.addresses or ("",))[0]))
        self._channels.append(None)

    async def close(self) -> None:
        """Close all sockets."""
        self._closed = True
        self._answering.close()
        for server in self._servers:
            server.close()
        await asyncio.gather(*(c.close() for c in self._channels if c is not None))

    async def run(self, wait: float, judge: Judge, alone: float = 0.0) -> Report | None:
        """Wait for the hosts, run all probes, and return the report that all hosts get."""
        began = time.monotonic()
        if len(self._came) >= self._look.launch.nodes:
            self._full.set()
        for seconds in (alone, wait - alone):
            with suppress(TimeoutError):
                await asyncio.wait_for(self._full.wait(), seconds)
            if seconds and seconds == alone and len(self._came) < 2:
                return None
        self._closed = True
        key = secrets.token_hex(16)
        self._answering.begin(key, 0)
        differing = _differing([c.look for c in self._came])
        count, every = len(self._came), [peer_of(c) for c in self._came]
        partners = [[(j, every[j]) for j in peers(i, count)] for i in range(count)]
        rows = [
            self._ask(i, {"key": key, "index": i, "roster": partners[i], "files": differing}) for i in range(1, count)
        ]
        mine = try_peers(partners[0], key)
        done = await asyncio.gather(mine, *rows)
        for came, row in zip(self._came, done, strict=True):
            came.tries = row if isinstance(row, list) else row.tries if row else []
            came.lines = row.lines if isinstance(row, PeerResults) else {}
        self._came[0].lines = {f: software.lines(self._look.launch.program, f) for f in differing}
        await asyncio.gather(*(self._back(i) for i in range(count)))
        if self._heavy and count > 1:
            for offset in bandwidth.offsets(count):
                await self._round(offset, key)
        report = judge(self._came, list(self._strangers.values()), time.monotonic() - began)
        await asyncio.gather(*(self._tell(c, report) for c in self._channels if c is not None))
        return report

    async def _ask(self, index: int, body: dict[str, Any]) -> PeerResults | None:
        channel = self._channels[index]
        assert channel is not None  # noqa: S101 - only this host has none
        try:
            await channel.send(body, SAYING)
            return msgspec.convert(await channel.receive(PROBING), PeerResults)
        except (protocol.WireError, msgspec.ValidationError):
            return None

    async def _back(self, index: int) -> None:
        """Ask a host that filters by return path for its routes back to the hosts whose probes went unanswered."""
        came, channel = self._came[index], self._channels[index]
        tries = [t for other in self._came for t in other.tries if t.node == index and t.result in routes.UNANSWERED]
        waited = list(dict.fromkeys(t.source for t in tries if t.source))[: routes.MOST]
        if channel is None:
            came.back = routes.back(waited, self._dropped)
        elif waited and any(c.strict for c in came.look.interfaces) and came.look.version == self._look.version:
            with suppress(protocol.WireError, msgspec.ValidationError):
                await channel.send({"back": waited}, SAYING)
                came.back = msgspec.convert(await channel.receive(SAYING), ReturnRoutes)

    async def _round(self, offset: int, key: str) -> None:
        """Have each host send bulk data to the peer `offset` places on, at an address that answered."""
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
                self._came[index].bulk.append(await bandwidth.send(*to, key))
                return
            try:
                await channel.send({"bulk": to}, SAYING)
                self._came[index].bulk.append(msgspec.convert(await channel.receive(PROBING), Bulk))
            except (protocol.WireError, msgspec.ValidationError):
                return

        for came in self._came:
            came.bulk = [*came.bulk]
        await asyncio.gather(*(one(i) for i in range(count)))

    async def _tell(self, channel: protocol.ProvenConnection, report: Report) -> None:
        with suppress(protocol.WireError):
            await channel.send(report, SAYING)

    async def _guest(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while len(self._guests) >= _GUESTS:  # clients that only connect must not keep hosts out
            next(iter(self._guests)).transport.abort()
            del self._guests[next(iter(self._guests))]
        self._guests[writer] = None
        address = str(writer.get_extra_info("peername")[0]).removeprefix("::ffff:")
        try:
            if self._closed:
                writer.close()
                return
            channel = await protocol.serve(reader, writer, self._token)
            self._guests.pop(writer, None)
            body = await channel.receive(SAYING)
            offset = float(body["time"]) - time.time()
            came = Arrival(
                look=sanitize_report(msgspec.convert(body["look"], HostReport)),
                node=None,
                address=address,
                offset=offset,
            )
            came.node = came.look.launch.node
        except protocol.WireError as error:
            if len(self._strangers) < 64 and (error.why == "token" or error.release):
                self._strangers[address] = Stranger(address, error.why, error.release)
            writer.close()
            return
        except (OSError, KeyError, TypeError, ValueError, asyncio.CancelledError):  # not our protocol, or shutting down
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


def _differing(looks: list[HostReport]) -> list[str]:
    every = dict.fromkeys(f for look in looks for f in look.files)
    return [f for f in every if len({look.files.get(f) for look in looks if look.files}) > 1][:FILES_ASKED]
