"""The first report of broken hardware in a log whose ranks then lost each other or waited."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dtdebug_taxonomy.explanations.context import Context
from dtdebug_taxonomy.explanations.model import Explanation, Reason, explanation_for
from dtdebug_taxonomy.knowledge.hardware import Event, parse_event
from dtdebug_taxonomy.logs.lines import Line
from dtdebug_taxonomy.text.lazy_re import lazy_re
from dtdebug_taxonomy.text.pattern_matcher import plain

EVIDENCE = "hardware-reported-first"
_SYMPTOM = "communication-error"
_DEVICE = "device-error"
_OWNERS = frozenset({"device", "link"})
_PROBABILITY = 0.75
_STEPS = 2
"""Steps after a report from which training continued, so that it ended nothing."""
_FOLLOWS = lazy_re(r"(?i)cuda|nccl|nvml|ecc\b|device|gloo|connection|peer|network|socket|timed? ?out")
"""Words of an exception that broken hardware can raise on a rank."""
_OF_DEVICE = lazy_re(r"(?i)cuda error|acceleratorerror|ecc\b|device-side|nvml")
"""Words of an exception that a device alone raises."""
_UP = lazy_re(r"(?i)\blink (?:is |becomes? )?up\b")
_HOST = lazy_re(r"(?<![\w./:-])[A-Za-z][A-Za-z0-9-]{0,60}\d(?:[A-Za-z0-9.-]{0,60}[A-Za-z0-9])?(?![\w:.])")
_SYSLOG = lazy_re(r"(?:\A|\s)([A-Za-z][\w.-]{0,60}) kernel\Z")
_NO_HOST = lazy_re(r"(?i)(?:rank|default|pid|gpu|step|iter|mlx|bond|eth|T)-?\d")
_REPORTS = lazy_re(r"Got async event|port error|NCCL WARN|CUDA error|Watchdog|NCCL error")
_NEAR, _LONGEST, _PREFIX = 40, 300, 100
_WHY = "It is the first report of broken hardware, and training made no step after it; the other ranks' errors follow."


def explain(context: Context) -> Iterator[Explanation]:
    """Yield the report, with its host and the rank there that speaks of it, unless training continued after it."""
    snapshot, incident = context.incident.snapshot, context.incident
    verdict = snapshot.verdict
    if not snapshot.output or any(c.what == "system" for c in (verdict.claims if verdict is not None else ())):
        return
    lines, own = incident.log.lines, incident.log.outcome.own
    if (verdict is None or verdict.kind == "none") and not incident.errors:
        return
    if own and not any(_FOLLOWS.search(raised.text) for raised in own):
        return
    for at, row in enumerate(lines):
        event = parse_event(row.body)
        if event is None or event.role != "root" or event.owner not in _OWNERS:
            continue
        host = row.host or event.host or _host_in(row.body)
        if incident.relevance.steps_after(row.number) >= _STEPS or _came_back(lines[at + 1 :], host, event):
            continue
        first = min(own, key=lambda raised: raised.line, default=None)
        if (
            first is not None
            and first.line < row.number
            and not (
                event.owner == "device" and _OF_DEVICE.search(first.text)  # the kernel's lines come later than a rank's
            )
        ):
            return
        yield _explanation(context, row, event, host, _rank_on(lines[at : at + _NEAR], host))
        return


def _explanation(context: Context, row: Line, event: Event, host: str, rank: int | None) -> Explanation:
    said = plain(" ".join(_message(row.body, host).split()), _LONGEST)
    where = f" on {host}" if host else ""
    who = f", where rank {rank} fails first" if rank is not None else ""
    wanted = _DEVICE if event.owner == "device" else _SYMPTOM
    symptom = next((code for code, s in context.knowledge.symptoms.items() if s.id == wanted), context.symptom)
    return explanation_for(
        symptom,
        f'{event.means[:1].upper()}{event.means[1:]}{where}{who}: "{said}"',
        _WHY,
        f"{event.action[:1].upper()}{event.action[1:]}{f'; leave {host} out' if host else ''}; then resume from the "
        "last checkpoint.",
        _PROBABILITY,
        Reason(
            evidence=EVIDENCE, means="The machine reports it before the ranks do.", source="printed", weight=2.5,
            line=row.number, words=said, rank=rank,
        ),
        pattern="fix hardware",
        effort="restart",
    )  # fmt: skip


def _host_in(body: str) -> str:
    """Return the first word before the message that may be a host's name: that of syslog, or letters, then a number."""
    head = body[:_PREFIX].partition(": ")[0]
    if (named := _SYSLOG.search(head)) is not None:
        return named[1]
    return next((m[0] for m in _HOST.finditer(head) if not _NO_HOST.match(m[0]) and "_" not in m[0]), "")


def _message(body: str, host: str) -> str:
    """Return a line from the message of the kernel or driver on."""
    end = body.find(host) + len(host) if host and host in body[:_PREFIX] else 0
    return body[end:].lstrip("] :|") if end else body


def _came_back(rest: Sequence[Line], host: str, event: Event) -> bool:
    if event.owner != "link":
        return False
    return any(_UP.search(row.body[:_LONGEST]) and (not host or host in (row.host, _host_in(row.body))) for row in rest)


def _rank_on(near: Sequence[Line], host: str) -> int | None:
    """Return the rank of that host which is the first to report something; None if none says its host."""
    if not host:
        return None
    found = (r for r in near[1:] if r.rank is not None and _REPORTS.search(r.body[:_LONGEST]))
    first = next(found, None)
    return first.rank if first is not None and (first.host == host or f"{host}:" in first.body[:_PREFIX]) else None
