"""Runs many cases at once, for measuring: `dtdebug diagnose --batch`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import msgspec

from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.explanations.model import rows_of
from dtdebug_taxonomy.incident import Incident
from dtdebug_taxonomy.inference import questions
from dtdebug_taxonomy.inference import ranking as inference_ranking
from dtdebug_taxonomy.inference.collect import collect
from dtdebug_taxonomy.knowledge.loader import Knowledge
from dtdebug_taxonomy.model.snapshot import Snapshot


def run_case(knowledge: Knowledge, case: Mapping[str, Any], most_questions: int = 0) -> dict[str, Any]:
    """Rank the symptoms and fix patterns of one case, asking at most `most_questions` questions.

    Reads `id`, `situation`, `evidence` and, only to answer its own questions, `observations`
    (an absent key is "don't know").

    Raises:
        ValueError: a key has the wrong type.

    """
    begin = time.perf_counter()
    texts = {name: case.get(name) or "" for name in ("situation", "evidence")}
    for name, text in texts.items():
        if not isinstance(text, str):
            raise ValueError(f"`{name}` is {type(text).__name__}, expected a text")
    told = case.get("observations") or {}
    if most_questions and not isinstance(told, Mapping):
        raise ValueError(f"`observations` is {type(told).__name__}, expected an object")
    incident = Incident(snapshot := Snapshot(situation=texts["situation"], output=texts["evidence"]))
    answers: dict[str, str] = {}
    asked: list[dict[str, str | None]] = []
    while True:
        findings = collect(knowledge, incident, answers)
        ranking = inference_ranking.rank(knowledge, findings)
        if len(asked) >= most_questions:
            break
        question = questions.best_question(knowledge, ranking, findings, {str(a["key"]) for a in asked})
        if question is None:
            break
        answer = told.get(question.key)
        asked.append({"key": question.key, "answer": answer})
        if answer is not None:
            answers[question.key] = str(answer)
    patterns = inference_ranking.fix_patterns(knowledge, ranking)
    unknown = tuple(str(a["key"]) for a in asked if a["answer"] is None)
    d = diagnose(knowledge, snapshot, answers, unknown)
    return {
        "id": case.get("id"),
        "symptoms": [{"code": code, "probability": round(p, 6)} for code, p in ranking.symptoms.items()],
        "fix_patterns": [{"pattern": name, "probability": round(p, 6)} for name, p in patterns.items()],
        "advice": rows_of(d.advice, d.guesses),
        "next": msgspec.to_builtins(d.next),
        "ordinary": d.ordinary,
        "questions": asked,
        "milliseconds": round((time.perf_counter() - begin) * 1000, 3),
    }
