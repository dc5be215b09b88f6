"""A finding: an indicator or observation known to hold, where it was seen, and how strong it is."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Literal

import msgspec

from dtdebug_taxonomy.knowledge.loader import Knowledge
from dtdebug_taxonomy.knowledge.schema import STRENGTHS
from dtdebug_taxonomy.model.snapshot import Near
from dtdebug_taxonomy.text.pattern_matcher import PatternHit, plain

Source = Literal["answered", "measured", "exception", "printed", "said", "checked", "similar"]

TRUST: dict[Source, float] = {
    "answered": 0.95,
    "measured": 0.95,
    "exception": 0.95,
    "printed": 0.9,
    "said": 0.8,
    "checked": 0.8,
    "similar": 0.6,
}
"""Probability that a finding from this source holds; otherwise it counts as unseen."""

SIMILAR, SIMILAR_FIX, SIMILAR_CAUSE, READ = "similar", "similar-fix", "similar-cause", "words"
"""Names of the findings from similarity (symptoms, fix patterns, causes), and of that from the words as a whole."""

_TRUST_OF_LINES = 0.97
"""Trust in what a check finds on the very line, or in the function, where a rank fails or waits."""
_TRUST_OF_CUES = 0.7
"""Trust in observations that are only read from words or output: a cue is weaker than an answer."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """Indicator known to hold, or observation with its possible values."""

    evidence: str
    """Evidence id, observation key, `SIMILAR`, `SIMILAR_FIX`, `SIMILAR_CAUSE` or `READ`."""
    values: tuple[str, ...] = ()
    """For an observation: values, one of which holds."""
    source: Source
    line: int = 0
    """1-based line of the output, of the user's words or of the cell; 0 if there is none."""
    words: str = ""
    """Words it was read from."""
    row: str = ""
    """The rest of the line from there, which a cure may take names from; it is not shown, for it may hold a secret."""
    rank: int | None = None
    terminal: bool = False
    """True if it is on the line of the exception that ended a rank."""
    file: str = ""
    """File in which a check found it; empty for the failed cell."""
    near: Near = "file"
    """Proximity to a rank's own line."""
    diff: str = ""
    """Its fix as a diff of that file, or of the failed cell."""
    check: str = ""
    """Id of the check."""
    told: str = ""
    """Message of the check on the very line on which an exception was raised; else empty."""
    way: str = ""
    """Effect of its fix, in the imperative."""
    scores: dict[str, float] = {}
    """For similarity and for the words as a whole: symptom code, fix pattern id or cause id -> log likelihood ratio."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names by which the knowledge mentions it: the evidence id, or `observation=value` for each value."""
        return tuple(f"{self.evidence}={value}" for value in self.values) or (self.evidence,)

    @property
    def trust(self) -> float:
        """Probability that the finding holds."""
        if self.values and self.source not in ("answered", "measured"):
            return _TRUST_OF_CUES
        if self.near != "file":
            return _TRUST_OF_LINES
        return TRUST[self.source]


LIKELY, POSSIBLE = 0.6, 0.15
"""Least probabilities of what is called likely and possible."""
TELLING = 0.4
"""Log likelihood ratio from which a finding is worth showing."""


def likelihood_ratios(knowledge: Knowledge, finding: Finding) -> dict[str, float]:
    """Return log(P(finding | symptom) / P(finding)) for each symptom, with trust taken into account."""
    if finding.scores:
        return finding.scores if finding.evidence not in {SIMILAR_FIX, SIMILAR_CAUSE} else {}
    prior, trust = knowledge.prior, finding.trust
    if finding.values:
        rows = [knowledge.likelihood(finding.evidence, v) for v in finding.values]
        inside = {code: math.fsum(row[code] for row in rows) for code in prior}
        outside = math.fsum(prior[code] * p for code, p in inside.items())
        return {code: math.log(trust * p / outside + 1 - trust) for code, p in inside.items()}
    if knowledge.evidence[finding.evidence].role == "advice":
        return {}
    share = shares(knowledge, finding.evidence)
    return {code: math.log(trust * share[code] / prior[code] + 1 - trust) for code in prior} if share else {}


@lru_cache(maxsize=4096)
def shares(knowledge: Knowledge, evidence: str) -> dict[str, float]:
    """Return P(symptom | evidence seen first) as its author worded it; empty if it names no symptom."""
    named = knowledge.evidence[evidence].symptoms
    if not named:
        return {}
    given = {code: STRENGTHS[w] for code, w in named.items()}
    total = math.fsum(given.values())
    left = max(1 - total, 0.03)
    rest = {code: p for code, p in knowledge.prior.items() if code not in given}
    scale = math.fsum(rest.values()) or 1.0
    weight = {**given, **{code: left * p / scale for code, p in rest.items()}}
    norm = math.fsum(weight.values())
    return {code: weight[code] / norm for code in knowledge.prior}


def from_hit(hit: PatternHit, source: Source, rank: int | None) -> Finding:
    """Return a hit as a finding."""
    key, _, value = hit.key.partition("=")
    values = (value,) if value else ()
    return Finding(evidence=key, values=values, source=source, line=hit.line, words=plain(hit.words), rank=rank)
