"""Rules for the knowledge as a whole; `make tidy` and the tests run them.

python -m dtdebug_taxonomy.dev.lint [SAMPLES_FOLDER] [CODE ...]
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from dtdebug_taxonomy.checks import load as load_checks
from dtdebug_taxonomy.dev.lint_labs import lab_problems
from dtdebug_taxonomy.dev.lint_study import study_problems
from dtdebug_taxonomy.dev.lint_topics import topic_problems
from dtdebug_taxonomy.dev.lint_words import word_problems
from dtdebug_taxonomy.inference import message_cures
from dtdebug_taxonomy.knowledge.labs import LABS
from dtdebug_taxonomy.knowledge.loader import STUDY, Knowledge, KnowledgeError, load
from dtdebug_taxonomy.knowledge.schema import Evidence, Symptom
from dtdebug_taxonomy.model.ranks import Kind
from dtdebug_taxonomy.text.pattern_matcher import problem_of

MANY_FAULTS = 10
"""A symptom with more faults than this in the study needs three causes."""
SUMMARY, SENTENCES, SAMPLES = 80, 8, 3
"""Minimum characters of a summary, sentences of users, frameworks among the samples."""


def problems(knowledge: Knowledge, samples: Path, only: frozenset[str] = frozenset()) -> list[str]:
    """Return every broken rule, as `file: what to do`. `only` limits symptom rules to some codes."""
    found = [*_evidence(knowledge), *_observations(knowledge), *lab_problems(knowledge), *topic_problems(knowledge)]
    found += [*word_problems(), *_checks(knowledge), *study_problems(knowledge)]
    for symptom in knowledge.symptoms.values():
        if not only or symptom.code in only:
            found += [f"symptoms/{symptom.id}.toml: {p}" for p in _symptom(knowledge, symptom, samples)]
    return found


def _sentence(text: str, mark: str = ".") -> bool:
    return text.strip().endswith(mark)


def _symptom(knowledge: Knowledge, s: Symptom, samples: Path) -> Iterator[str]:
    if not _sentence(s.summary) or len(s.summary) < SUMMARY:
        yield "summary: a few sentences for a newcomer, ending in '.'"
    names = {p.name for p in knowledge.patterns.values()}
    for name in s.counts[STUDY].fix_patterns:
        if not name.startswith("other: ") and name not in names:
            yield f"fix pattern {name!r} is not in patterns.toml"
    for key, values in s.observed.items():
        known = {v.value for v in knowledge.observations[key].value} if key in knowledge.observations else set()
        if unknown := set(values) - known:
            yield f"observed.{key}: unknown {sorted(unknown)}"
    for r in s.reference:
        if not r.url.startswith("https://"):
            yield f"reference {r.url!r} is not an https address"
    yield from _causes(knowledge, s)
    if not s.code.endswith("other"):
        yield from _complete(s, samples)


def _causes(knowledge: Knowledge, s: Symptom) -> Iterator[str]:
    ids = [c.id for c in s.cause]
    if len(ids) != len(set(ids)):
        yield "two causes have the same id"
    for c in s.cause:
        if c.pattern not in knowledge.patterns:
            yield f"cause {c.id}: no fix pattern {c.pattern!r}"
        if not (_sentence(c.why) and _sentence(c.fix)):
            yield f"cause {c.id}: why and fix end in '.'"
        if c.diff and not re.search(r"^[-+]", c.diff, re.MULTILINE):
            yield f"cause {c.id}: diff has no line that begins with + or -"
        if c.lab and not all((LABS / c.lab / f).is_file() for f in ("before.py", "after.py")):
            yield f"cause {c.id}: labs/{c.lab} before.py or after.py is missing"
        for name in c.evidence:
            if not _is_known(knowledge, name):
                yield f"cause {c.id}: no evidence {name!r}"


def _complete(s: Symptom, samples: Path) -> Iterator[str]:
    """Yield what a named leaf is missing."""
    if len(s.cause) < (3 if s.counts[STUDY].faults > MANY_FAULTS else 1):
        yield "too few causes (three where the study saw more than ten faults)"
    if len(s.reference) < 2:
        yield "at least two references"
    if len(s.says) < SENTENCES:
        yield f"at least {SENTENCES} sentences in `says`"
    if not s.observed:
        yield "observed: say at least what was running and how it shows"
    kinds = {f.name.split("-", 1)[0] for f in (samples / s.id).glob("*.txt")}
    if len(kinds) < SAMPLES:
        yield f"samples from {SAMPLES} frameworks, found {sorted(kinds)}"


def _is_known(knowledge: Knowledge, name: str) -> bool:
    key, _, value = name.partition("=")
    if value:
        return key in knowledge.observations and any(v.value == value for v in knowledge.observations[key].value)
    return name in knowledge.evidence


def _evidence(knowledge: Knowledge) -> Iterator[str]:
    rows = [(f"messages/{n}.toml", e) for n, m in knowledge.messages.items() for e in m.evidence]
    rows += [(f"symptoms/{s.id}.toml", e) for s in knowledge.symptoms.values() for e in s.evidence]
    used = {name for s in knowledge.symptoms.values() for c in s.cause for name in c.evidence}
    used |= {name for _, e in rows for names in (*e.all, e.unless) for name in names}
    used |= {name for m in knowledge.measures for name in (*m.seen, *m.unless)}
    used |= {name for s in knowledge.symptoms.values() for c in s.cause for name in c.unless}
    first: dict[str, str] = {}
    for place, e in rows:
        if e.id in first:
            yield f"{place}: evidence {e.id} stands in {first[e.id]} too"
        first.setdefault(e.id, place)
        yield from (f"{place}: evidence {e.id}: {p}" for p in _one_evidence(knowledge, e, e.id in used))
    for m in knowledge.measures:
        names = (name for name in m.seen if not _is_known(knowledge, name))
        yield from (f"measures.toml: {m.id}: no evidence {name}" for name in names)


def _one_evidence(knowledge: Knowledge, e: Evidence, used: bool) -> Iterator[str]:
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", e.id):
        yield "id in kebab-case"
    if not _sentence(e.means):
        yield "means: one sentence, ending in '.'"
    if not (e.text or e.exception or e.says or e.verdict or e.stack or e.check or e.watch or e.own or e.order or e.all):
        yield "no way to see it"
    yield from _references(knowledge, e)
    for words in e.verdict:
        kind, _, more = words.partition(" ")
        if kind not in get_args(Kind) or not re.fullmatch(
            "(SIG[A-Z]+|uneven|loop_ended|circle|lock_circle|set_up|shared_rank|own_exit)?", more
        ):
            kinds = ", ".join(get_args(Kind))
            yield f"verdict {words!r}: one of {kinds}, or one with a signal's name or an aspect, as in model.py"
    if not (e.symptoms or used or e.role != "root"):
        yield "names no symptom and no cause uses it"
    if e.text and e.symptoms and not e.cite:
        yield "cite where the message is printed"
    causes = frozenset(c.id for code in e.symptoms or knowledge.symptoms for c in knowledge.symptoms[code].cause)
    yield from message_cures.problems(e, causes)
    for pattern in (*e.text, *e.says, *e.stack):
        if problem := problem_of(pattern):
            yield f"pattern {pattern!r}: {problem}"


def _checks(knowledge: Knowledge) -> Iterator[str]:
    """Yield checks without a known cause, or whose symptoms do not begin with their cause's."""
    for check in load_checks().values():
        place = f"checks/{check.folder.name}/check.toml"
        if check.cause not in knowledge.causes:
            yield f"{place}: no cause {check.cause!r}"
        elif (code := knowledge.causes[check.cause][0].code) != check.symptom[0]:
            yield f"{place}: begin `symptom` with {code}, that of its cause"


def _references(knowledge: Knowledge, e: Evidence) -> Iterator[str]:
    if unknown := {name for pair in e.order for name in pair} - set(knowledge.evidence):
        yield f"order: no evidence {sorted(unknown)}"
    if unknown := {name for names in (*e.all, e.unless) for name in names if not _is_known(knowledge, name)}:
        yield f"all: no evidence {sorted(unknown)}"
    if unknown := set(e.symptoms) - set(knowledge.symptoms):
        yield f"unknown symptoms {sorted(unknown)}"
    if unknown := set(e.check) - set(load_checks()):
        yield f"unknown checks {sorted(unknown)}"


def _observations(knowledge: Knowledge) -> Iterator[str]:
    for o in knowledge.observations.values():
        place = f"observations/{o.key}.toml"
        if not _sentence(o.ask, "?"):
            yield f"{place}: ask ends in '?'"
        if not (_sentence(o.why) and _sentence(o.how)):
            yield f"{place}: why and how end in '.'"
        for v in o.value:
            for pattern in (*v.says, *v.text):
                if problem := problem_of(pattern):
                    yield f"{place}: value {v.value}: pattern {pattern!r}: {problem}"


def main(arguments: list[str]) -> int:
    """Print the problems; return exit status 1 if there are any."""
    samples = Path(arguments[0]) if arguments else Path("tests/samples")
    try:
        found = problems(load(), samples, frozenset(arguments[1:]))
    except KnowledgeError as error:
        found = [str(error)]
    print("\n".join(found) or "tidy")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
