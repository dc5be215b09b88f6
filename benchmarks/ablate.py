"""Switches off each part of the inference and answers all committed inputs again.

python benchmarks/ablate.py [PART ...] [--indicators]

A part whose absence changes no answer has no committed input that shows what it is for. `--indicators` lists the
indicators that no committed text shows.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import json
import multiprocessing
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple
from unittest import mock

TESTS = Path(__file__).parent.parent / "tests"
sys.path.insert(0, str(TESTS))

from accuracy import spelling  # noqa: E402
from golden_cases import GOLDENS, Case, all_cases, golden  # noqa: E402

from dtdebug_taxonomy.diagnosis.diagnose import Diagnosis, diagnose  # noqa: E402
from dtdebug_taxonomy.knowledge.loader import load  # noqa: E402
from dtdebug_taxonomy.text.matchers import matchers_of  # noqa: E402
from dtdebug_taxonomy.text.similarity import Likeness  # noqa: E402
from dtdebug_taxonomy.text.word_reader import Reading  # noqa: E402

CORES = 2


def nothing(*_: Any) -> None:
    """In place of what finds something or None."""


def empty(*_: Any) -> tuple[()]:
    """In place of what finds several things."""
    return ()


PARTS: dict[str, dict[str, Callable[..., Any]]] = {
    "similarity": {"text.similarity:likeness": lambda *_: Likeness({}, {}, "")},
    "word_reader": {"text.word_reader:read_words": lambda *_: Reading({}, "")},
    "guesses": {"explanations.grades:split_guesses": lambda _, found, __: (found, ())},
    "combined": {"inference.combined:combine_findings": empty},
    "out_of_scope": {"diagnosis.out_of_scope:is_foreign": lambda *_: False},
    "redundancy": {"inference.collect:drop_redundant": nothing},
    "phrase_table": {"text.phrase_table:spoken_phrases": empty},
    "examples": {"explanations.examples:drop_foreign_examples": lambda snapshot, found: tuple(found)},
    "attempts": {"inference.collect:_without_attempts": lambda knowledge, situation, hits: hits},
}
"""Part -> stand-in for each of its functions, `module:function`. To switch off one more, add a row.

For a part named like its module all lines count, otherwise those of its functions.
"""
REGISTRIES = ("explanations.table:RULES", "diagnosis.headline:HEADLINES")
"""Tuples of rules, each of which is a part as well."""


class Answer(NamedTuple):
    """The compared parts of one answer."""

    golden: str
    symptom: bool
    """Raters accept the first symptom."""
    cause: str
    """`right` or `wrong`: whether they accept the fix of the first cause; empty where none is shown or none rated."""


def found_in(name: str) -> Any:
    """The object of `module:name`, None where it is gone."""
    module, _, attribute = name.partition(":")
    try:
        return getattr(importlib.import_module(f"dtdebug_taxonomy.{module}"), attribute, None)
    except ModuleNotFoundError:
        return None


def rules() -> dict[str, tuple[str, Any]]:
    """Return each rule by name, with the registry it is in."""
    return {
        f"{registry.partition(':')[2].lower()[:-1]} {getattr(rule, 'name', None) or rule.__name__}": (registry, rule)
        for registry in REGISTRIES
        for rule in found_in(registry)
    }


def stand_ins(part: str) -> dict[str, Any]:
    """Return what to put in place of what, to switch a part off."""
    if part not in (known := rules()):
        return dict(PARTS.get(part, {}))
    registry, off = known[part]
    return {registry: tuple(rule for rule in found_in(registry) if rule is not off)}


def lines(part: str) -> int:
    """Lines of its code."""
    if part in (known := rules()):
        rule = known[part][1]
        fields = getattr(type(rule), "__match_args__", ())
        functions = [f for f in (rule, *(getattr(rule, name) for name in fields)) if isinstance(f, FunctionType)]
        return sum(len(inspect.getsourcelines(f)[0]) for f in functions)
    found = [inspect.unwrap(f) for name in stand_ins(part) if (f := found_in(name)) is not None]
    modules = {sys.modules[f.__module__] for f in found if f.__module__.endswith(f".{part}")}
    return sum(len(inspect.getsourcelines(f)[0]) for f in modules or found)


def switch_off(part: str, stack: ExitStack) -> None:
    """Replace its functions under every name by which a module of ours knows them."""
    for name, new in stand_ins(part).items():
        old = found_in(name)
        ours = [module for path, module in [*sys.modules.items()] if path.startswith("dtdebug")]
        for module in ours if old is not None else ():
            for attribute in [key for key, value in vars(module).items() if value is old]:
                stack.enter_context(mock.patch.object(module, attribute, new))


def answers(part: str) -> dict[str, Answer]:
    """The answers to all cases without a part. In a process of its own: the caches of another part's would tell."""
    with ExitStack() as stack:
        switch_off(part, stack)
        return {case.name: answer(case) for case in all_cases()}


def answer(case: Case) -> Answer:
    """The answer to one case."""
    snapshot = case.read()
    found = diagnose(load(), snapshot)
    return Answer(golden(snapshot, found), found.symptoms[0].code in case.rated.get("accept", ()), judged(case, found))


def judged(case: Case, found: Diagnosis) -> str:
    """Return `right` if raters accept the fix of the first cause, else `wrong`; "" if nothing was rated or shown."""
    accepted = {spelling(fix) for fix in case.rated.get("accept_fixes", ())}
    if not accepted or not found.advice:
        return ""
    return "right" if spelling(found.advice[0].pattern) in accepted else "wrong"


def row(part: str, before: Mapping[str, Answer], now: Mapping[str, Answer]) -> str:
    """A line of the table; lost and won are the answers that are so only with, only without the part."""
    changed = [name for name in before if before[name].golden != now[name].golden]
    samples = sum(name.startswith("samples/") for name in changed)
    symptoms = sum(a.symptom for a in now.values()) - sum(a.symptom for a in before.values())
    moved = [(a.cause, now[name].cause) for name, a in before.items() if a.cause != now[name].cause]
    lost = {word: sum(old == word for old, _ in moved) for word in ("right", "wrong")}
    won = {word: sum(new == word for _, new in moved) for word in ("right", "wrong")}
    told = "".join(f"{lost[word]:>8}{won[word]:>6}" for word in ("right", "wrong"))
    known = all(found_in(name) is not None for name in stand_ins(part))
    return f"{part:<22}{lines(part):>6}{len(changed):>9}{samples:>9}{symptoms:>+10}{told}{'' if known else '  (gone)'}"


def table(parts: Iterable[str]) -> None:
    """Answers all cases without each part, and prints what that changes."""
    chosen = ["", *parts]
    with multiprocessing.get_context("spawn").Pool(CORES, maxtasksperchild=1) as pool:
        results = pool.imap(answers, chosen)
        before = next(results)
        stale = sum(not (f := GOLDENS / f"{n}.json").exists() or f.read_text() != a.golden for n, a in before.items())
        first = [a.cause for a in before.values() if a.cause]
        rated = sum(bool(case.rated) for case in all_cases())
        print(
            f"{len(before)} answers, {stale} of them not as in {GOLDENS.name}; {rated} are rated: the first symptom is"
        )
        print(f"right in {sum(a.symptom for a in before.values())}, a cause comes first in {len(first)},", end=" ")
        print(f"of which the fix is accepted in {first.count('right')}")
        print(f"{'':<28}{'answers':>9}{'samples':>9}{'symptoms':>10}{'right causes':>14}{'wrong causes':>14}")
        heads = f"{'switched off':<22}{'lines':>6}{'changed':>9}{'changed':>9}{'right':>10}"
        print(f"{heads}{'lost':>8}{'won':>6}{'lost':>8}{'won':>6}")
        for part, now in zip(chosen[1:], results, strict=True):
            print(row(part, before, now), flush=True)


def texts(file: Path) -> Iterator[str]:
    """The texts of a committed file: its lines, or the strings of a program or of JSON."""
    text = file.read_text(encoding="utf-8", errors="replace")
    if file.suffix == ".py":
        for node in ast.walk(ast.parse(text)):
            parts = node.values if isinstance(node, ast.JoinedStr) else [node]
            yield "".join(str(p.value) if isinstance(p, ast.Constant) else "0" for p in parts)
    elif file.suffix in (".json", ".jsonl"):
        yield from (json.loads(found) for found in re.findall(r'"(?:[^"\\\n]|\\.)*"', text))
    else:
        yield text


def indicators() -> None:
    """Prints the indicators with patterns that no committed text below `tests` shows."""
    kinds = (".py", ".txt", ".log", ".json", ".jsonl")
    files = [f for f in TESTS.rglob("*") if f.suffix in kinds and GOLDENS not in f.parents]
    rows = sorted({line.strip() for file in files for text in texts(file) for line in text.split("\n")} - {""})
    matcher = matchers_of(load()).words_matcher
    # of so few lines all are looked at
    seen = {hit.key for at in range(0, len(rows), 90) for hit in matcher.hits("\n".join(rows[at : at + 90]))}
    worded = [e for e in load().evidence.values() if e.text or e.says]
    unseen = [e.id for e in worded if e.id not in seen]
    print(*unseen, sep="\n")
    print(f"{len(unseen)} of {len(worded)} indicators with patterns are shown by no committed text")


def main() -> int:
    """Print the table, or the indicators."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("parts", nargs="*", metavar="PART", help="those to switch off, in place of all")
    parser.add_argument("--indicators", action="store_true", help="list the indicators that no committed text shows")
    options = parser.parse_args()
    known = (*PARTS, *rules())
    if unknown := [part for part in options.parts if part not in known]:
        parser.error(f"no part {', '.join(unknown)}; there are {', '.join(known)}")
    if options.indicators:
        indicators()
    else:
        table(options.parts or known)
    return 0


if __name__ == "__main__":
    sys.exit(main())
