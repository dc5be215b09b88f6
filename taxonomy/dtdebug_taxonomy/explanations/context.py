"""The context of one explanation: the incident, what was inferred from it, and the knowledge."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from dtdebug_taxonomy.incident import Incident
from dtdebug_taxonomy.inference.certainty import by_root
from dtdebug_taxonomy.inference.finding import Finding
from dtdebug_taxonomy.inference.ranking import Ranking
from dtdebug_taxonomy.knowledge.loader import Knowledge

_SOMETHING_ELSE = "D.1.other"
"""Symptom of a failure that the output alone describes, if no message of it names a symptom."""
_OWN_CHECK = "own-check-of-the-ranks-raised"


@dataclass(frozen=True)
class Context:
    """Everything an explanation may rest on; no explanation sees another one."""

    knowledge: Knowledge
    incident: Incident
    findings: tuple[Finding, ...]
    ranking: Ranking

    @cached_property
    def symptom(self) -> str:
        """Code of the symptom to which an explanation belongs that names none itself."""
        first = next(iter(self.ranking.symptoms))
        alone = self.incident.snapshot.output and not self.incident.snapshot.situation
        if alone and not by_root(self.knowledge, self.ranking.contributions[first]):
            return _SOMETHING_ELSE
        return first

    @cached_property
    def own_check(self) -> Finding | None:
        """The program's own check that found the ranks to differ."""
        rows = self.ranking.contributions[self.symptom]
        return next((c.finding for c in rows if c.finding.evidence == _OWN_CHECK), None)
