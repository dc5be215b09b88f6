"""Compares hosts: versions, code, variables, clocks, devices, memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from dtdebug.doctor.judge.findings import finding, fold_names, labels, split_majority
from dtdebug.doctor.report_types import HostFinding
from dtdebug.doctor.types import Arrival, Severity

_HEART_BEAT = 15.0
"""Seconds after which c10d considers a host dead: three of torch's 5 s heartbeats."""
_OFF = 1.0
_HARD = frozenset(
    (
        "torch",
        "torch (imported)",
        "nccl (loaded)",
        "nvidia-nccl-cu12",
        "nvidia-nccl-cu13",
        "horovod",
        "mpi4py",
        "deepspeed",
    )
)
_DETAIL = "DETAIL"
"""Value of TORCH_DISTRIBUTED_DEBUG with which ranks exchange more messages."""
_SHOWN = 4


def judge(came: Sequence[Arrival], *, is_gloo: bool) -> Iterator[HostFinding]:
    """Yield all differences between hosts."""
    if len(came) < 2:
        return
    called = labels(came)
    yield from _versions(came, called)
    yield from _code(came, called)
    yield from _variables(came, called, is_gloo=is_gloo)
    yield from _clocks(came, called)
    yield from _devices(came, called)
    yield from _figures(came, called)
    yield from _fabric(came, called)
    places = [c.look.place for c in came]
    most, others = split_majority(places)
    if others:
        yield finding(
            "DR406",
            f"{fold_names([called[i] for i in others])} run in another folder",
            hosts=[called[i] for i in others],
            measured="; ".join(places[i] for i in others[:_SHOWN]),
            expected=str(most),
        )
    most, others = split_majority([c.look.version for c in came])
    if others:
        yield finding(
            "DR213",
            f"{fold_names([called[i] for i in others])} have another dtdebug",
            hosts=[called[i] for i in others],
            measured=came[others[0]].look.version,
            expected=str(most),
        )


def _format_values(called: list[str], values: Sequence[object], others: list[int], most: object) -> str:
    groups: dict[str, list[str]] = {}
    for i in others:
        groups.setdefault(str(values[i]) if values[i] is not None else "not there", []).append(called[i])
    said = [f"{fold_names(hosts)}: {value}" for value, hosts in list(groups.items())[:_SHOWN]]
    if len(others) < len(values):
        said.append(f"the others: {most if most is not None else 'not there'}")
    return "; ".join(said)


def _versions(came: Sequence[Arrival], called: list[str]) -> Iterator[HostFinding]:
    for name in dict.fromkeys(n for c in came for n in c.look.versions):
        values = [c.look.versions.get(name) for c in came]
        most, others = split_majority(values)
        if others:
            severity: Severity = "fault" if name in _HARD else "hint" if name == "machine" else "warning"
            shown = _format_values(called, values, others, most)
            yield finding(
                "DR401",
                f"{name} differs ({shown})",
                hosts=[called[i] for i in others],
                measured=shown,
                expected=f"{name} {most}" if len(others) < len(values) else f"one {name}",
                severity=severity,
            )


def _code(came: Sequence[Arrival], called: list[str]) -> Iterator[HostFinding]:
    seeing = [i for i, c in enumerate(came) if c.look.files]
    for name in dict.fromkeys(f for i in seeing for f in came[i].look.files):
        values = [came[i].look.files.get(name) for i in seeing]
        most, places = split_majority(values)
        others = [seeing[p] for p in places]
        if not others:
            continue
        usual = next(
            (came[i].lines.get(name) for i in seeing if came[i].look.files.get(name) == most and i not in others), None
        )
        usual = usual or came[seeing[0]].lines.get(name)
        line = _first(usual, next((came[i].lines.get(name) for i in others if came[i].lines.get(name) != usual), None))
        where = f", from line {line} on" if line else ""
        absent = all(came[i].look.files.get(name) is None for i in others)
        words = "is not there" if absent else "differs"
        yield finding(
            "DR402",
            f"{name} {words} on {fold_names([called[i] for i in others])}{where}",
            hosts=[called[i] for i in others],
            measured=words,
            expected="the same code on all hosts",
        )


def _first(one: list[str] | None, other: list[str] | None) -> int:
    if not one or not other:
        return 0
    for number, (a, b) in enumerate(zip(one, other, strict=False), 1):
        if a != b:
            return number
    return min(len(one), len(other)) + 1


def _variables(came: Sequence[Arrival], called: list[str], *, is_gloo: bool) -> Iterator[HostFinding]:
    for name in dict.fromkeys(n for c in came for n in c.look.variables):
        values = [c.look.variables.get(name) for c in came]
        most, others = split_majority(values)
        if others:
            nccl = name.startswith("NCCL_")
            severity: Severity = (
                "fault"
                if name == "WORLD_SIZE" or _DETAIL in values or (nccl and not is_gloo)
                else "hint"
                if nccl
                else "warning"
            )
            values = [value if value is not None else "not set" for value in values]
            shown = _format_values(called, values, others, most if most is not None else "not set")
            yield finding(
                "DR403",
                f"{name} differs ({shown})",
                hosts=[called[i] for i in others],
                measured=shown,
                expected="one value on all hosts",
                severity=severity,
            )


def _clocks(came: Sequence[Arrival], called: list[str]) -> Iterator[HostFinding]:
    middle = median(c.offset for c in came)
    for i, c in enumerate(came):
        off = c.offset - middle
        if abs(off) < _OFF:
            continue
        elastic = c.look.launch.backend == "c10d"
        severity: Severity = "fault" if abs(off) > _HEART_BEAT and elastic else "warning" if elastic else "hint"
        leads = ": the rendezvous takes hosts for dead after 15 s" if severity == "fault" else ""
        yield finding(
            "DR501",
            f"the clock of {called[i]} is {abs(off):.1f} s {'ahead' if off > 0 else 'behind'}{leads}",
            hosts=[called[i]],
            measured=f"{off:+.1f} s",
            expected=f"less than {_OFF:g} s",
            severity=severity,
        )


def _devices(came: Sequence[Arrival], called: list[str]) -> Iterator[HostFinding]:
    looked = [(i, c.look.devices) for i, c in enumerate(came) if c.look.devices is not None]
    if len(looked) > 1:
        values = [f"{len(d or ())} x {', '.join(sorted(set(d or ())))}" for _, d in looked]
        most, places = split_majority(values)
        if places:
            hosts = [called[looked[p][0]] for p in places]
            yield finding(
                "DR602",
                f"{fold_names(hosts)}: {values[places[0]]}",
                hosts=hosts,
                measured=values[places[0]],
                expected=str(most),
            )


def _fabric(came: Sequence[Arrival], called: list[str]) -> Iterator[HostFinding]:
    """Yield ports that are inactive or slower than on the other hosts, and differing drivers and topologies."""
    rows = [(i, p) for i, c in enumerate(came) for p in c.look.fabric]
    for name in dict.fromkeys(p.name for _, p in rows):
        mine = [(i, f"{p.state}, {p.rate}") for i, p in rows if p.name == name]
        most, places = split_majority([words for _, words in mine])
        if places and len(mine) > 2 and len(places) < len(mine):
            hosts = [called[mine[p][0]] for p in places]
            yield finding(
                "DR605",
                f"{name} is {mine[places[0]][1]} on {fold_names(hosts)}; {most} on the others",
                hosts=hosts,
                measured=mine[places[0]][1],
                expected=str(most),
            )
    for words, values in (
        ("driver", [c.look.driver for c in came]),
        ("connections between devices", [c.look.topology for c in came]),
    ):
        most, places = split_majority(values)
        if places and all(values) and len(places) < len(values):
            hosts = [called[p] for p in places]
            yield finding(
                "DR602",
                f"{fold_names(hosts)}: other {words} than the others",
                hosts=hosts,
                measured=values[places[0]].replace("\n", " / "),
                expected=str(most).replace("\n", " / "),
            )


def _figures(came: Sequence[Arrival], called: list[str]) -> Iterator[HostFinding]:
    for name, words in (("memory", "memory"), ("cores", "cores")):
        values = [c.look.figures.get(name) for c in came]
        known = [v for v in values if v]
        if len(known) < 3:
            continue
        usual = median(known)
        for i, value in enumerate(values):
            if value and value < 0.6 * usual:
                yield finding(
                    "DR506",
                    f"{called[i]} has {_unit(name, value)} of {words}, {_unit(name, usual)} elsewhere",
                    hosts=[called[i]],
                    measured=_unit(name, value),
                    expected=_unit(name, usual),
                )


def _unit(name: str, value: float) -> str:
    return f"{value / (1 << 30):.0f} GiB" if name == "memory" else f"{value:.0f}"
