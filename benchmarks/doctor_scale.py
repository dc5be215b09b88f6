"""Measures the collecting host's cost with many hosts: each connects over a real socket, with a record and results.

python benchmarks/doctor_scale.py [HOSTS]: seconds, bytes and memory. The hosts are tasks of this process, which answer
with what a probe of each pair would have measured; that probe itself is not run.
"""

from __future__ import annotations

import asyncio
import os
import resource
import socket
import sys
import time

import msgspec
import psutil

from dtdebug.doctor.host import report as host_report
from dtdebug.doctor.judge import report as judge_report
from dtdebug.doctor.meet import hub, protocol, roster
from dtdebug.doctor.report_types import Report
from dtdebug.doctor.types import Choice, HostReport, Interface, Launch, Meeting, Name, Try


def main() -> int:
    """Print the figures."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1024
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4 * count + 100)), hard))
    with socket.socket() as plug:
        plug.bind(("127.0.0.1", 0))
        port = plug.getsockname()[1]
    launch = Launch(
        launcher="torchrun",
        nodes=count,
        least=count,
        per_node=8,
        address="127.0.0.1",
        port=port,
        backend="static",
        node=0,
    )
    real = host_report.examine_host(launch, os.environ)
    looks = [_host(real, i) for i in range(count)]
    record = len(msgspec.json.encode(looks[1]))
    began = time.monotonic()
    report = asyncio.run(_all(looks))
    seconds = time.monotonic() - began
    memory = psutil.Process().memory_info().rss / (1 << 20)
    rows = len(msgspec.json.encode(_tries(0, count))) / 1024
    print(f"{count} hosts: {seconds:.1f} s, a record {record / 1024:.1f} KiB, a row {rows:.1f} KiB, {memory:.0f} MiB")
    print(f"came {sum(r.came for r in report.hosts)}, findings {[(f.id, f.hosts) for f in report.findings]}")
    return 0


def _host(real: HostReport, i: int) -> HostReport:
    address = f"10.{i >> 8}.{i & 255}.1"
    return msgspec.structs.replace(
        real, host=f"n{i:04d}", boot=f"b{i}", launch=msgspec.structs.replace(real.launch, node=i), problems=(),
        gloo=Choice(address=address, interface="eth0", why="own name"), nccl=Choice(address=address, interface="eth0"),
        interfaces=(Interface(name="eth0", up=True, mtu=1500, addresses=(f"{address}/8",)),),
        own=Name(name=f"n{i:04d}", addresses=(address,)),
        endpoint=Name(name="n0000", addresses=("10.0.0.1",)), ports=((address, 40000),),
    )  # fmt: skip


def _tries(index: int, count: int) -> list[Try]:
    """Return results in which one host in the middle loses large messages."""
    bad = count // 2
    return [
        Try(node=j, address=f"10.{j >> 8}.{j & 255}.1", milliseconds=0.2, large=bad not in (index, j), passes=0)
        for j in roster.peers(index, count)
    ]


async def _all(looks: list[HostReport]) -> Report:
    async def mine(partners: object, key: str) -> list[Try]:
        return _tries(0, len(looks))

    hub.try_peers = mine
    collecting = asyncio.ensure_future(hub.collect(looks[0], "t", 60.0, judge_report.together))
    await asyncio.sleep(0.5)
    answers = await asyncio.gather(collecting, *(_come(one, len(looks)) for one in looks[1:]))
    (meeting, report), *_ = answers
    assert isinstance(meeting, Meeting) and report is not None  # noqa: PT018
    return report


async def _come(one: HostReport, count: int) -> None:
    reader, writer = await protocol.connect("127.0.0.1", one.launch.port or 0, 30.0)
    channel = await protocol.call(reader, writer, "t")
    await channel.send({"look": one, "time": time.time()}, 60.0)
    body = await channel.receive(120.0)
    await channel.send({"tries": _tries(int(body["index"]), count), "lines": {}}, 60.0)
    await channel.receive(240.0)
    await channel.close()


if __name__ == "__main__":
    sys.exit(main())
