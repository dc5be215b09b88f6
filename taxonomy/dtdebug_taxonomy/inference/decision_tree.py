"""The decision tree, derived by unrolling the question policy from "nothing is known"."""

from __future__ import annotations

from collections.abc import Iterator

from dtdebug_taxonomy.inference import questions
from dtdebug_taxonomy.inference import ranking as inference_ranking
from dtdebug_taxonomy.inference.finding import Finding
from dtdebug_taxonomy.knowledge.loader import Knowledge

_SURE = 0.8
_RARE = 0.03
"""Minimum share of cases for an answer to be shown."""


def tree(knowledge: Knowledge, depth: int = 3) -> str:
    """Return the tree as indented lines: questions, answers, and the symptoms that then lead."""
    return "\n".join(_branch(knowledge, {}, depth, ""))


def _branch(knowledge: Knowledge, answers: dict[str, str], depth: int, indent: str) -> Iterator[str]:
    findings = [Finding(evidence=k, values=(v,), source="answered") for k, v in answers.items()]
    ranking = inference_ranking.rank(knowledge, findings)
    ahead = list(ranking.symptoms.items())
    question = None
    if depth and ahead[0][1] < _SURE:
        question = questions.best_question(knowledge, ranking, findings)
    if question is None:
        leaves = [f"{code} {knowledge.symptoms[code].title} ({p:.0%})" for code, p in ahead[:3] if p > ahead[0][1] / 4]
        yield f"{indent}-> {'; '.join(leaves)}"
        return
    o = knowledge.observations[question.key]
    yield f"{indent}{o.ask} [{question.key}]"
    for v in o.value:
        row = knowledge.likelihood(question.key, v.value)
        if sum(p * row[code] for code, p in ranking.symptoms.items()) >= _RARE:
            yield f"{indent}  {v.value}: {v.means}"
            yield from _branch(knowledge, {**answers, question.key: v.value}, depth - 1, indent + "    ")
