"""Removes findings made redundant by others; one function per rule."""

from __future__ import annotations

import re

from dtdebug_taxonomy.inference.finding import Finding
from dtdebug_taxonomy.knowledge.loader import Knowledge

WITHOUT_ERROR = frozenset(("B.2", "C.4", "D.2.1", "D.2.3"))
"""Symptoms of hanging and slow programs, which their users interrupt."""
_OF_A_DEVICE = re.compile(r"(?i)gpu|cuda|device|card|vram|video|hbm")


def leave(knowledge: Knowledge, evidence: dict[str, Finding], cues: dict[str, dict[str, Finding]]) -> None:
    """Remove redundant findings from both; `cues` are observations with the values that were read."""
    _of_a_host(cues)
    _of_those_who_waited(knowledge, evidence, cues)
    for name in [n for n in evidence if evidence.keys() & {*knowledge.evidence[n].unless}]:
        del evidence[name]


def _of_a_host(cues: dict[str, dict[str, Finding]]) -> None:
    """Drop exhausted device memory if the same words report that of the host."""
    host, device = (cues.get(key, {}).get("full") for key in ("host_memory", "device_memory"))
    if host is None or device is None or {host.source, device.source} != {"said"} or _OF_A_DEVICE.search(device.words):
        return
    if host.line == device.line:
        _drop(cues, "device_memory", "full")


def _of_those_who_waited(
    knowledge: Knowledge, evidence: dict[str, Finding], cues: dict[str, dict[str, Finding]]
) -> None:
    """Drop findings of ranks that only waited for a rank whose exception is printed earlier."""
    roots = (f for f in evidence.values() if f.terminal and f.rank is not None and f.source == "printed")
    first = min((f for f in roots if knowledge.evidence[f.evidence].role == "root"), key=lambda f: f.line, default=None)
    if first is None:
        return
    for name in [n for n, f in evidence.items() if f.source == "printed" and f.line > first.line]:
        found = knowledge.evidence[name]
        waited = found.role == "cascade" and not WITHOUT_ERROR.isdisjoint(found.symptoms)
        if waited and evidence[name].rank not in (None, first.rank):
            del evidence[name]
    hang = cues.get("manifestation", {}).get("hang")
    if hang is not None and hang.source == "printed" and hang.line > first.line:
        _drop(cues, "manifestation", "hang")


def _drop(cues: dict[str, dict[str, Finding]], key: str, value: str) -> None:
    del cues[key][value]
    if not cues[key]:
        del cues[key]
