"""Judges bulk transfers (`--heavy`): slow hosts and packet loss."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from dtdebug.doctor.judge.findings import finding, labels
from dtdebug.doctor.judge.matrix import Hosts
from dtdebug.doctor.report_types import HostFinding
from dtdebug.doctor.types import Arrival, Bulk

_SLOW = 4.0
"""Minimum slowdown compared with the pairs without the host."""
_LOSS, _LEAST = 0.003, 20
"""Minimum share and number of retransmitted segments; TCP's bandwidth probing stays below."""
_LOUDER = 4.0
"""Minimum ratio to the loss of the quieter pairs: if all hosts lose a little, none is at fault."""
_FIGURES = (
    ("disk_rate", "writes", "to disk"),
    ("shm_rate", "writes", "to shared memory"),
    ("memory_rate", "copies", "in memory"),
)
_SLOW_HOST = 5.0


def judge(came: Hosts) -> Iterator[HostFinding]:
    """Yield all findings; none if nothing was sent."""
    called = labels(came)
    rows = [(i, b.node, b.rate, b) for i, c in enumerate(came) for b in c.bulk if 0 <= b.node < len(came)]
    yield from _rates(came, called)
    if len(came) < 3 or not rows:
        return
    yield from _slow(called, [(i, j, r) for i, j, r, _ in rows if r])
    usual = sorted(_loss(b) for *_, b in rows)[len(rows) // 4]
    lossy = [(i, j, b) for i, j, _, b in rows if b.again >= _LEAST and _loss(b) > max(_LOSS, _LOUDER * usual)]
    left = list(lossy)
    while left:
        host = max(range(len(called)), key=lambda h: sum(_loss(b) for i, j, b in left if h in (i, j)))
        rows_ = [(i, j, b) for i, j, b in left if host in (i, j)]
        mine_ = [b for _, _, b in rows_]
        left = [(i, j, b) for i, j, b in left if host not in (i, j)]
        ends = {h for i, j, _ in rows_ for h in (i, j)}
        hosts = [called[host]] if len(ends) > 2 else [called[h] for h in sorted(ends)]  # either host of one pair
        again, sent = sum(b.again for b in mine_), sum(b.sent for b in mine_)
        way = "to or from it" if len(hosts) == 1 else "between them"
        pairs = [(called[i], called[j]) for i, j, b in lossy if b in mine_]
        yield finding(
            "DR306",
            f"{' and '.join(hosts)}: {100 * again / max(1, sent):.1f} % of what is sent {way} is sent again",
            hosts=hosts,
            pairs=pairs,
            measured=f"{again} of {sent} segments",
            expected="less than 0.3 %",
        )


def _loss(bulk: Bulk) -> float:
    return bulk.again / max(1, bulk.sent)


def _slow(called: list[str], rows: list[tuple[int, int, float]]) -> Iterator[HostFinding]:
    """Yield slow hosts; if one direction is much slower, only that one."""
    for host, name in enumerate(called):
        others = [r for i, j, r in rows if host not in (i, j)]
        ways = {
            "sends": [r for i, _, r in rows if i == host],
            "receives": [r for _, j, r in rows if j == host],
        }
        slow = {
            w: median(mine) for w, mine in ways.items() if mine and others and median(mine) * _SLOW < median(others)
        }
        least = min(slow.values(), default=0.0)
        slow = {words: rate for words, rate in slow.items() if rate < 2 * least}
        if slow:
            yield finding(
                "DR307",
                f"{name} {' and '.join(f'{w} {r:.0f} MB/s' for w, r in slow.items())}; "
                f"{median(others):.0f} MB/s between the others",
                hosts=[name],
                measured=f"{least:.0f} MB/s",
                expected=f"about {median(others):.0f} MB/s",
            )


def _rates(came: Sequence[Arrival], called: list[str]) -> Iterator[HostFinding]:
    """Compare each host's own disk and memory rates with the other hosts'."""
    for key, verb, where in _FIGURES:
        values = [c.look.figures.get(key, 0.0) for c in came]
        for i, value in enumerate(values):
            others = [v for k, v in enumerate(values) if k != i and v]
            if len(others) >= 2 and value and value * _SLOW_HOST < median(others):
                yield finding(
                    "DR509",
                    f"{called[i]} {verb} {value:.0f} MB/s {where}; {median(others):.0f} MB/s on the others",
                    hosts=[called[i]],
                    measured=f"{value:.0f} MB/s",
                    expected=f"about {median(others):.0f} MB/s",
                )


def throughput_line(came: Hosts) -> str:
    """Return the report's throughput from the slowest to the fastest pair, or ""."""
    rates = sorted(b.rate for c in came for b in c.bulk if b.rate)
    return f"; {rates[0]:.0f} to {rates[-1]:.0f} MB/s" if rates else ""
