"""Two packages whose releases do not fit: one asks the other for a name or an argument that it does not have here.

Or one that contradicts itself: a check that refuses what it allows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from dtdebug_taxonomy.explanations.context import Context
from dtdebug_taxonomy.explanations.model import Explanation, explanation_for, printed_reason
from dtdebug_taxonomy.knowledge import facts
from dtdebug_taxonomy.logs.final_errors import FinalError
from dtdebug_taxonomy.logs.message_advice import refuses_what_it_allows
from dtdebug_taxonomy.model.effort import Effort
from dtdebug_taxonomy.model.ranks import Frame
from dtdebug_taxonomy.stacks.frames import is_library, short
from dtdebug_taxonomy.text.lazy_re import lazy_re

_ARGUMENT = lazy_re(
    r"(?P<call>[\w.]{2,120})\(\) (?:got an unexpected keyword argument ['\"]?(?P<name>\w{1,80})"
    r"|missing \d{1,2} required (?:positional|keyword-only) arguments?: ['\"]?(?P<missing>\w{1,80}))"
)
_ATTRIBUTE = lazy_re(r"module ['\"](?P<owner>[\w.]{1,120})['\"] has no attribute ['\"](?P<name>\w{1,80})")
_OBJECT = lazy_re(r"['\"](?P<owner>[A-Z]\w{3,80})['\"] object has no attribute ['\"](?P<name>\w{1,80})")
_IMPORT = lazy_re(r"cannot import name ['\"]?(?P<name>\w{1,80})['\"]? from ['\"](?P<owner>[\w.]{1,120})['\"]")
_PACKAGE = lazy_re(r"(?:site|dist)-packages[/\\](?P<name>[A-Za-z]\w{1,60})[/\\.]")
_PLUMBING = frozenset({"torch", "_pytest", "pluggy", "click", "typer", "fire", "hydra", "omegaconf"})
"""Packages whose frames stand between others: they call what they were given."""
_LAUNCHES = lazy_re(
    r"[/\\](?:multiprocessing[/\\](?:spawn|process|pool|api|errors[/\\]__init__)|launchers?|utils[/\\]launch)\.py$"
)
"""Modules that call a function of the program in a process that they have started."""
_ANY_RELEASE = lazy_re(r"(?i)parallel$|engine$|^compiled|^optimized|^NoneType$|tensor$|^parameter$|namespace$")
"""Objects that wrap a model, so that what is asked of them is asked of the wrapper, and the program's own data: neither
tells of releases."""
_PARAMETER = lazy_re(r"[(,] ?\*{0,2}(?P<name>[A-Za-z]\w{0,80})(?=[=,)])")
_LIKE = 0.8
"""Share of letters from which a name is taken for a misspelt one."""
_PROBABILITY = 0.4
_NEAR = 8
"""Number of innermost frames that are examined."""


class Conflict(NamedTuple):
    """The conflict, and how to resolve it."""

    title: str
    fix: str
    why: str = "Names and arguments of a package change between its releases; who calls it was written for another."
    pattern: str = "fix framework version"
    effort: Effort = "reinstall"


def explain(context: Context) -> Iterator[Explanation]:
    """Yield the version conflict that the first final error shows."""
    for error in context.incident.errors:
        found = find_conflict(error)
        if found is not None:
            yield explanation_for(
                context.symptom,
                found.title,
                found.why,
                found.fix,
                _PROBABILITY,
                printed_reason(error, "releases-do-not-fit", "Where it was raised, and for what.", error.message),
                pattern=found.pattern,
                effort=found.effort,
            )
            return


def find_conflict(error: FinalError) -> Conflict | None:
    """The two that do not fit, None where the exception does not say so."""
    kind = error.type.rsplit(".", 1)[-1]
    if misspelt := _misspelt(error):
        return misspelt
    frames = [f for f in error.frames if not f.file.startswith("<")]
    if not frames:
        return None
    at = frames[-1]
    asking = _package(at)
    place = f"{short(at.file)}:{at.line}"
    if value := refuses_what_it_allows(error.message):
        return Conflict(
            f"The check in {place} is wrong: it refuses {value!r}, which it names as allowed",
            f"A defect{f' of this release of {asking}' if asking else ''}: look at the branches above that line (one"
            " that only the main process takes falls through on the others), and take a release, or a line of your own,"
            " without it.",
        )
    if kind == "TypeError" and (found := _ARGUMENT.search(error.message)) is not None:
        return _argument(found, asking, place, at)
    if kind in ("ImportError", "AttributeError"):
        found = _IMPORT.search(error.message) or _ATTRIBUTE.search(error.message)
        if found is not None and asking and found["owner"].partition(".")[0] not in (asking, "torch_npu"):
            owner = found["owner"].partition(".")[0]
            return Conflict(
                f"{asking} and {owner} are of releases that do not fit: {asking} wants {found['name']} of"
                f" {found['owner']}, which the installed {owner} does not have",
                _fix(asking, owner),
            )
        found = _OBJECT.search(error.message)
        others = [p for p in (_package(f) for f in frames[-_NEAR:]) if p and p != asking and p not in _PLUMBING]
        if found and asking and others and asking not in _PLUMBING and not _ANY_RELEASE.search(found["owner"]):
            other = others[-1]
            return Conflict(
                f"{asking} and {other} may be of releases that do not fit: at {place} a {found['owner']} is asked for"
                f" {found['name']}, which it does not have",
                _fix(asking, other),
            )
    return None


def _misspelt(error: FinalError) -> Conflict | None:
    """An argument of a public name that is written a little otherwise there."""
    found = _ARGUMENT.search(error.message)
    if found is None or not found["name"] or (error.frames and _package(error.frames[-1]) not in ("", "torch")):
        return None
    from difflib import get_close_matches

    call = found["call"].removesuffix(".__init__").rpartition(".")[2]
    for name, row in facts.public_names().names.items():
        takes = _PARAMETER.findall(row.takes) if name.rpartition(".")[2] == call else []
        if found["name"] not in takes and (near := get_close_matches(found["name"], takes, 1, _LIKE)):
            release = facts.public_names().version(name.partition(".")[0])
            return Conflict(
                f"{call}() has no argument {found['name']}: it takes {near[0]}",
                f"Write {near[0]} in place of {found['name']}, as {release} has it; "
                f'`python -c "help(...)"` of {name} shows what the installed release takes.',
                "The name differs in a few letters from one that it takes.",
                "fix distributed api usage",
                "edit",
            )
    return None


def _argument(found: re.Match[str], asking: str, place: str, at: Frame) -> Conflict:
    call, name = found["call"], found["name"] or found["missing"]
    does = "does not take" if found["name"] else "needs"
    if found["missing"] and _LAUNCHES.search(at.file):
        return Conflict(
            f"{call}() needs {name}, and the processes are started without it",
            f"Hand {name} over where they are started: the launcher's args=(...) holds all that {call}() takes"
            " (mp.spawn puts the rank before it).",
            "A launcher calls the function with what it was given as args, and with nothing else.",
            "fix distributed api usage",
            "edit",
        )
    if asking and asking not in _PLUMBING:
        return Conflict(
            f"{asking} is of another release than what it calls: {call}() {does} {name} here",
            f"{place} of {asking} was written for another release of the package that {call} is from: see `pip show"
            f" {asking}` for what it requires, `pip check` for what is broken, and install the two as one of their"
            " releases names them (an upgrade of both is the usual cure).",
        )
    if is_library(at.file):
        return Conflict(f"{call}() {does} {name} here", f"See who calls it in {place}, and upgrade that package.")
    return Conflict(
        f"{call}() of the installed release {does} {name}",
        f'{place} was written for another release: `python -c "help(...)"` of {call}, or its release notes, say what'
        f" {name} is called now; or install the release that the script names.",
    )


def _fix(asking: str, other: str) -> str:
    return (
        f"`pip show {asking} {other}` shows the two releases and `pip check` what is required. Install those that one"
        f" release of {asking} names in its requirements; usually the older of the two is upgraded."
    )


def _package(frame: Frame) -> str:
    found = list(_PACKAGE.finditer(frame.file))
    return found[-1]["name"] if found else ""
