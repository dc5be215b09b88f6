"""Connects all hosts where the job would: one host collects, the others come, and all get the report."""

from __future__ import annotations

import asyncio
import time

import msgspec

from dtdebug.doctor.host import interfaces, routes, software
from dtdebug.doctor.meet import bandwidth, hub, pair_probes, protocol
from dtdebug.doctor.meet.roster import FILES_ASKED, PROBING, SAYING, Peer, PeerResults, answering_at, try_peers
from dtdebug.doctor.report_types import Report
from dtdebug.doctor.types import MOST_HOSTS, HostReport, Meeting

PAUSE = 0.2


def meeting(
    look: HostReport, token: str, wait: float, judge: hub.Judge, *, heavy: bool, shared: bool = False
) -> tuple[Meeting, Report | None]:
    """Return how this host met the others, and the report of the collecting host.

    If the host of the endpoint is not node 0, nothing would listen there: after half of the time it does, and node 0
    connects to it too, so that all hosts report the mistake. With a `shared` folder they exchange reports in any case.
    """

    def collect(seconds: float, alone: float = 0.0) -> tuple[Meeting, Report | None]:
        return asyncio.run(hub.collect(look, token, seconds, judge, heavy=heavy, alone=alone))

    collects, half = _collects(look), wait / 2
    if shared or not _is_unlike(look):
        return collect(wait) if collects else _come(look, token, wait)
    found, report = collect(wait, half) if collects else _come(look, token, half)
    if collects and found.result == "hub" and report is None:
        there, report = _come(look, token, half)
        return (there, report) if report is not None else collect(half)
    return collect(half) if found.result == "refused" else (found, report)


def _come(look: HostReport, token: str, wait: float) -> tuple[Meeting, Report | None]:
    try:
        return asyncio.run(come(look, token, wait))
    except protocol.WireError as error:
        return Meeting(result="lost", words=f"the first host was lost on the way ({error.why})"), None


def _is_numbered(look: HostReport) -> bool:
    return look.launch.node is not None and look.launch.backend in ("static", "env", "mpi", "ray")


def _is_unlike(look: HostReport) -> bool:
    """True if this host is the first by number but not by address, or the reverse."""
    addresses = look.endpoint.addresses
    known = _is_numbered(look) and bool(addresses) and not any(interfaces.is_loopback(a) for a in addresses)
    return known and (look.launch.node == 0) != look.owns


def _collects(look: HostReport) -> bool:
    """True if the other hosts connect to this one."""
    if _is_numbered(look):
        return look.launch.node == 0
    return look.owns or (look.takes_itself and all(interfaces.is_loopback(a) for a in look.endpoint.addresses))


async def come(look: HostReport, token: str, wait: float) -> tuple[Meeting, Report | None]:
    """Connect to the collecting host, probe the peers, and return the report; retry for `wait` seconds."""
    began, tries, last = time.monotonic(), 0, Meeting(result="timeout")
    if not look.endpoint.addresses:
        return Meeting(result="unresolved", words=look.endpoint.error), None
    answering = pair_probes.ProbeServer()
    await answering.open(answering_at(look))
    try:
        while (left := wait - (time.monotonic() - began)) > 0:
            tries += 1
            address = look.endpoint.addresses[(tries - 1) % min(4, len(look.endpoint.addresses))]
            try:
                reader, writer = await protocol.connect(
                    address, look.launch.port or 0, min(pair_probes.CONNECTING, left), segment=protocol.SEGMENT
                )
            except (OSError, TimeoutError) as error:
                word = pair_probes.error_word(error)
                if not (word == "timeout" and left < 1 and last.words):
                    last = Meeting(
                        result=word, words=f"{address}: {getattr(error, 'strerror', '') or 'no answer'}", tries=tries
                    )
                await asyncio.sleep(PAUSE)
                continue
            try:
                channel = await protocol.call(reader, writer, token)
                hello = msgspec.structs.replace(look, ports=tuple(answering.ports))
                await channel.send({"look": hello, "time": time.time()}, SAYING)
                return await _inside(look, channel, answering, wait)
            except protocol.WireError as error:
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
    look: HostReport, channel: protocol.ProvenConnection, answering: pair_probes.ProbeServer, wait: float
) -> tuple[Meeting, Report | None]:
    try:
        body = await channel.receive(wait + SAYING)
        key, index = str(body["key"]), int(body["index"])
        partners = msgspec.convert(body["roster"], list[tuple[int, Peer]])[:MOST_HOSTS]
        files = [str(f) for f in body["files"]][:FILES_ASKED]
    except (KeyError, TypeError, ValueError):
        raise protocol.WireError("other") from None
    before = routes.count_dropped()
    answering.begin(key, index)
    tries = await try_peers(partners, key)
    known = [f for f in files if f in look.files]  # a peer's request must not read any other file
    lines = {f: software.lines(look.launch.program, f) for f in known}
    await channel.send(PeerResults(tries=tries, lines=lines), SAYING)
    try:
        body = await channel.receive(PROBING + 2 * SAYING)
        while isinstance(body, dict) and body.keys() & {"back", "bulk"}:
            if "back" in body:
                await channel.send(routes.back(msgspec.convert(body["back"], list[str]), before), SAYING)
            else:
                node, address, port = msgspec.convert(body["bulk"], tuple[int, str, int])
                if not any(i == node and [address, port] in [[*p] for p in peer.ports] for i, peer in partners):
                    raise protocol.WireError("other")  # only peers of the roster are called
                await channel.send(await bandwidth.send(node, address, port, key), SAYING)
            body = await channel.receive(PROBING + 2 * SAYING)
        return Meeting(result="came"), msgspec.convert(body, Report)
    except msgspec.ValidationError:
        raise protocol.WireError("version") from None
