"""A value that is None, or a variable that is not set: which one, read from the line of code that raised."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from dtdebug_taxonomy.explanations.context import Context
from dtdebug_taxonomy.explanations.model import Explanation, explanation_for, printed_reason
from dtdebug_taxonomy.logs.final_errors import FinalError
from dtdebug_taxonomy.stacks.frames import short
from dtdebug_taxonomy.text.lazy_re import lazy_re
from dtdebug_taxonomy.text.pattern_matcher import plain

_EXPRESSION = r"[A-Za-z_][\w.]{0,80}(?:\[[^\[\]\n]{1,40}\]){0,2}"
_CONVERTED = lazy_re(rf"\b(?:int|float|len|range|Path|join|open|exists|isdir)\((?P<what>{_EXPRESSION})\)")
_VARIABLE = lazy_re(r"\b(?:environ\.get|getenv)\(['\"](?P<name>\w{2,60})['\"]\)")
_KEY = lazy_re(r"^['\"](?P<name>[A-Z][A-Z0-9]{1,30}(?:_[A-Z0-9]{1,30}){0,6})['\"]$")
_OF_ENVIRONMENT = lazy_re(r"\b(?:os\.)?(?:environ|environment|env)\[")
_ATTRIBUTE = lazy_re(r"'NoneType' object has no attribute '(?P<name>\w{1,80})'")
_INDEXED = lazy_re(rf"(?P<what>{_EXPRESSION})\[")
_COLLECTED = lazy_re(rf"\[(?P<what>{_EXPRESSION}) for ")
_ITERATED = lazy_re(rf"\bin (?P<what>{_EXPRESSION}):")
_OPTIONS = lazy_re(
    r"^(?:self\.)?(?:\w{1,20}_)?(?:args|opts?|options|cfg|config|conf|hparams|params|flags)\.(?P<name>[\w.]+)$"
)
"""Objects that hold command-line options or configuration."""


class NoneValue(NamedTuple):
    """The value that is None, and how to set it."""

    title: str
    fix: str


_PROBABILITY = 0.4


def explain(context: Context) -> Iterator[Explanation]:
    """Yield the value that is None, or the variable that is not set, in the first final error that shows one."""
    for error in context.incident.errors:
        found = find_none_value(error)
        if found is not None:
            reason = printed_reason(error, "value-is-none", "The line that raised, and its message.", error.message)
            why = "The line that raised uses this value alone as one."
            yield explanation_for(context.symptom, found.title, why, found.fix, _PROBABILITY, reason)
            return


def find_none_value(error: FinalError) -> NoneValue | None:
    """The value that is None, or the variable that is not set, in the innermost line of the exception.

    None where the line does not show it.
    """
    key = _KEY.match(error.message.strip()) if error.type == "KeyError" else None
    if not error.frames or (key is None and "NoneType" not in error.message):
        return None
    at = error.frames[-1]
    code = (at.code or error.code)[:400]
    place = f"{short(at.file)}:{at.line}"
    if key is not None and not _OF_ENVIRONMENT.search(code):
        return None
    if variable := key or _VARIABLE.search(code):
        name = variable["name"]
        return NoneValue(
            f"The variable {name} is not set where {place} reads it",
            f"Export {name} before the program starts, on every host; what a launcher sets (RANK, WORLD_SIZE,"
            " LOCAL_RANK, MASTER_ADDR, MASTER_PORT) is there only if that launcher starts it.",
        )
    what = plain(_value(error.message, code))
    if not what:
        return None
    if given := _OPTIONS.match(what):
        name = given["name"].rpartition(".")[2]
        return NoneValue(
            f"{what} was not given: it is None at {place}",
            f"Give it: `--{name}` (or {given['name']} in the configuration) has no default that would do here. Under"
            " Slurm or on several hosts it may have to differ for each, as $SLURM_PROCID or $SLURM_NODEID does.",
        )
    return NoneValue(
        f"{what} is None at {place}",
        f"Find where {what} is set: a branch that only some ranks take, something that is gathered to or read by rank 0"
        " alone, a pipeline stage that has none, a file or option that is missing. Print it with the rank just before"
        " that line.",
    )


def _value(message: str, code: str) -> str:
    """The expression, where the line has one that it can be."""
    if attribute := _ATTRIBUTE.search(message):
        found = re.findall(rf"({_EXPRESSION})\.{re.escape(attribute['name'])}\b", code)
    elif "not subscriptable" in message:
        found = [m["what"] for m in _INDEXED.finditer(code)]
    elif "as element" in message:
        found = [m["what"] for m in _COLLECTED.finditer(code)]
    elif "not iterable" in message:
        found = [m["what"] for m in _ITERATED.finditer(code)]
    else:
        found = [m["what"] for m in _CONVERTED.finditer(code)]
    return found[0] if len({*found}) == 1 else ""
