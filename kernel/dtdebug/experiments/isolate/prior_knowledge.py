"""Reads what the user already knows: results that need no run, and answered questions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dtdebug.errors import UsageError
from dtdebug.experiments.isolate.run_types import RANKS, Outcome
from dtdebug.privacy.sanitize import plain
from dtdebug_taxonomy.incident import Incident
from dtdebug_taxonomy.inference.collect import collect
from dtdebug_taxonomy.knowledge import factors
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.model.snapshot import Snapshot
from dtdebug_taxonomy.text.comparisons import find_condition

_OBSERVED = {"works_with_one_process": RANKS, "works_with_other_backend": "gloo-backend"}
"""Questions whose answer is the result of a run."""
_ONLY = re.compile(
    r"(?i)(?<!not )\bonly (?:fails?|hangs?|crash(?:es)?|happens?|occurs?) (?:with|when using) (?P<thing>[\w ]{3,40})"
    r"|(?<!not )\b(?:fails?|hangs?|crash(?:es)?|happens?|occurs?) only (?:with|when using) (?P<other>[\w ]{3,40})"
)
_STILL = re.compile(
    r"(?i)(?:\b(?:still|also) (?:fails?|hangs?|crash(?:es)?|happens?|occurs?)|\bsame (?:error|failure|hang|crash)) "
    r"(?P<with>with(?:out)? [\w =.-]{3,40})"
)
_WENT: dict[str, Outcome] = {"yes": "ok", "no": "same", "works": "ok", "fails": "same"}


class UserReport(NamedTuple):
    """The user's description and answers."""

    situation: str = ""
    answers: tuple[tuple[str, str], ...] = ()
    """(observation, value) of each answer."""
    results: tuple[tuple[str, Outcome], ...] = ()
    """(factor, outcome of the job with it changed)."""
    one_host: str = ""
    """`yes` or `no` if it works or fails on one host; else empty."""
    sometimes: bool = False
    """The job fails only sometimes."""


def parse_answers(pairs: Sequence[str], situation: str) -> UserReport:
    """Parse `--answer KEY=VALUE` and `--situation TEXT`; of the text only unambiguous statements count.

    Raises:
        UsageError: the key is neither a question nor a factor, or does not have that value.

    """
    knowledge = load()
    known = {f.id for f in factors.load()}
    answers, results = dict[str, str](), dict[str, Outcome]()
    for pair in pairs:
        key, _, value = pair.partition("=")
        values = [v.value for v in knowledge.observations[key].value] if key in knowledge.observations else []
        values = ["works", "fails"] if key in known else values
        if not values:
            raise UsageError(
                f"isolate --answer {pair}: no question {key!r}, and no factor among {', '.join(sorted(known))}"
            )
        if value not in values:
            raise UsageError(f"isolate --answer {pair}: {key} is one of {', '.join(values)}")
        if key in known:
            results[key] = _WENT[value]
        else:
            answers[key] = value
    situation = plain(situation)
    said = {
        f.evidence: f.values for f in collect(knowledge, Incident(Snapshot(situation=situation)), answers) if f.values
    }
    sure = {key: values[0] for key, values in said.items() if len(values) == 1}
    for name, went in _parse_outcomes(situation):
        results.setdefault(name, went)
    for key, factor in _OBSERVED.items():
        if sure.get(key) in ("yes", "no"):
            results.setdefault(factor, _WENT[sure[key]])
    return UserReport(
        situation,
        tuple(answers.items()),
        tuple(results.items()),
        sure.get("works_on_one_node", ""),
        sure.get("reproducible") in ("sometimes", "after_long_time"),
    )


def _parse_outcomes(situation: str) -> Iterator[tuple[str, Outcome]]:
    """Yield (factor, outcome with it changed) from text such as "works without compile", "still fails with gloo"."""
    text = situation.replace("torch.compile", "compile")
    works = find_condition(text)
    words = [works.words.lower()] if works is not None else []
    words += [f"without {(m['thing'] or m['other']).lower()}" for m in _ONLY.finditer(text[:10_000])]
    still = [m["with"].lower() for m in _STILL.finditer(text[:10_000])]
    for f in factors.load():
        if f.said and any(re.match(f.said, said) for said in words):
            yield f.id, "ok"
        elif f.said and any(re.match(f.said, said) for said in still):
            yield f.id, "same"
