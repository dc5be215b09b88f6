"""After a failed run, names the doctor check that would have caught the failure.

What one host can measure is measured again and must be found; what needs several hosts must be named in the
failure's text, with the endpoint of this command.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from dtdebug.doctor.types import Launch
from dtdebug_taxonomy.knowledge.preflight import KnownFile, load
from dtdebug_taxonomy.presentation.case_json import Case

_AT_ENDPOINT = frozenset(("DR101", "DR201", "DR202", "DR203", "DR204", "DR206"))
_LOOPBACK = "127."
_SHOWN = 3
_DIVIDES = re.compile(r"divisib|multiple of|not equal|batch related")
"""Text in which a framework rejects sizes; a measurement decides whether these sizes are the cause."""


def foreseen_line(found: Case, command: Sequence[str], variables: Mapping[str, str], output: str) -> str:
    """Return one line, or "" if no check would have caught it or that is unknown."""
    printed = dict(_printed_messages(found, output.splitlines()))
    possible = [known for known in load().values() if printed.keys() & set(known.seen_as)]
    said = found.verdict.summary
    if not possible and not _DIVIDES.search(said):
        return ""
    from dtdebug.doctor.examine import ExamineOptions, examine
    from dtdebug.errors import UsageError

    try:
        answer = examine(command, variables, ExamineOptions(here=True))
    except UsageError:
        return ""
    now = {f.id: f.text for f in answer.report.findings}
    sure = [(k, now[k.id]) for k in possible if k.id in now]
    if not sure and _DIVIDES.search(said):
        sure = [(load()[number], text) for number, text in now.items() if number.startswith("DR7")]
    words = {k.id: " ".join(printed[e] for e in k.seen_as if e in printed) for k in possible}
    sure = sure or [(k, k.title) for k in possible if _by_words(k, words[k.id], answer.look.launch)]
    if not sure:
        return ""
    many = answer.look.launch.nodes > 1
    where = "on each host `dtdebug doctor -- COMMAND`" if many else "`dtdebug doctor -- COMMAND`"
    if len(sure) == 1:
        return f"before the run, {where} tells of this: {sure[0][0].id}, {sure[0][1]}"
    return f"before the run, {where} tells which of these it is: {', '.join(k.id for k, _ in sure[:_SHOWN])}"


def _printed_messages(found: Case, output: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield (message id, line that contains it) for messages that the job itself printed or raised."""
    if found.diagnosis is None or found.verdict.kind == "none":
        return
    for symptom in found.diagnosis.symptoms:
        for reason in symptom.why:
            if reason.weight > 0 and reason.words:
                whole = output[reason.line - 1] if 0 < reason.line <= len(output) else ""
                yield reason.evidence, whole if reason.words.strip()[:8] in whole else reason.words


def _by_words(known: KnownFile, words: str, launch: Launch) -> bool:
    if known.id == "DR202":
        return bool(launch.port) and str(launch.port) in words
    if launch.nodes < 2:
        return False
    if known.id in _AT_ENDPOINT:
        return bool(launch.address) and (launch.address in words or str(launch.port) in words)
    if known.id == "DR102":
        return _LOOPBACK in words
    return known.id in ("DR301", "DR305") and _LOOPBACK not in words
