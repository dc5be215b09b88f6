"""Facts of the same material that veto a cause: its fix is in force already, or its framework is nowhere to be seen."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from dtdebug_taxonomy.explanations.context import Context
from dtdebug_taxonomy.explanations.model import Explanation
from dtdebug_taxonomy.logs.relevance import is_explained
from dtdebug_taxonomy.text.lazy_re import lazy_re

_OPTION = lazy_re(r"(?<![\w.'-])(?P<name>[A-Za-z]\w{1,60}_\w{1,60})=(?P<value>\w{1,40})\b")
_ASIDE = lazy_re(r" \([^()]{0,300}\)")
_MAIN_END = lazy_re(r"[,;.](?: |$)")
"""End of the clause of a fix that says what to do first."""
_OF_TORCH = frozenset({"torch_ddp", "torch_fsdp", "torch_other", "torch_dataparallel", "torch_rpc", "other"})
"""Values of `framework` that need no library beside torch."""
_MOST = 200_000


def drop_vetoed(context: Context, rows: Iterable[Explanation]) -> tuple[Explanation, ...]:
    """Remove causes that a fact vetoes, and asides of fixes that propose what is set."""
    return tuple(_without_set(context, a) for a in rows if not any(veto(context, a) for veto in _VETOES))


def _is_in_force(context: Context, found: Explanation) -> bool:
    """True if what the fix says to do first is to set an option that is set."""
    main = _MAIN_END.split(_ASIDE.sub("", found.fix), maxsplit=1)[0]
    options = [*_options(main)]
    return bool(options) and not found.file and all(is_set(context, name, value) for name, value in options)


def _without_set(context: Context, found: Explanation) -> Explanation:
    """Drop the asides of a fix that speak of options that are set."""

    def keep(aside: re.Match[str]) -> str:
        return "" if any(is_set(context, *option) for option in _options(aside[0])) else aside[0]

    fix = _ASIDE.sub(keep, found.fix)
    return found if fix == found.fix else replace(found, fix=fix)


def _options(text: str) -> Iterator[tuple[str, str]]:
    return ((m["name"], m["value"]) for m in _OPTION.finditer(text))


def is_set(context: Context, name: str, value: str) -> bool:
    """True if an option has that value: in the environment, the command or the source, or by the message's own words.

    That a text contains it is not enough, for messages propose options too.
    """
    snapshot, knowledge = context.incident.snapshot, context.knowledge
    option = f"{name}={value}"
    seen = (knowledge.evidence[f.evidence] for f in context.findings if f.evidence in knowledge.evidence)
    if snapshot.environment.get(name) == value or any(option in e.shows for e in seen):
        return True
    if any(option in word for word in snapshot.command) or option in snapshot.cell:
        return True
    if any(re.search(rf"(?<!\w){re.escape(option)}\b", line) for e in snapshot.excerpts for line in e.lines):
        return True
    spelt = rf"(?<!\w){re.escape(name)}[`'\"]{{0,2}} ?[=:] ?{re.escape(value)}\b[`'\"]{{0,2}}"
    told = re.compile(
        rf"\b(?:each|all|both|every|already|always|even|still)(?: of (?:them|these))?,? (?:with|has|have|uses?|sets?)"
        rf" [`'\"(]{{0,2}}{spelt}"
        rf"|{spelt} (?:is|was|has been) (?:already |explicitly )?(?:enabled|set|passed|used|on\b)"
        rf"|\balready [\w ,']{{0,40}}[`'\"(]{{0,2}}{spelt}"
        rf"|^ *(?:export )?{re.escape(option)}\b|^ *[`'\"]?{re.escape(name)}[`'\"]? ?: ?{re.escape(value)}\b",
        re.IGNORECASE | re.MULTILINE,
    )
    return any(told.search(text[:_MOST]) for text in (snapshot.output, snapshot.situation))


def _is_foreign(context: Context, found: Explanation) -> bool:
    """True if the cause is one of a library beside torch, and a traceback and all words show no such library."""
    _, cause = context.knowledge.causes.get(found.cause, ("", None))
    needed = cause.needs.get("framework", ()) if cause is not None else ()
    if not needed or not _OF_TORCH.isdisjoint(needed) or found.named:
        return False
    known = any(f.evidence == "framework" and f.values for f in context.findings)
    return not known and any(e.frames for e in context.incident.errors)


_SAME_FILES = frozenset({"all-ranks-prepare-the-same-files", "ranks-write-same-file"})
"""Causes in which several ranks are on one file at once."""


def _is_on_own_files(context: Context, found: Explanation) -> bool:
    """True if the cause wants all ranks on the same files, and the rank that failed has named one of its own."""
    if found.cause not in _SAME_FILES or found.named:
        return False
    return any(e.rank in context.incident.files_of_ranks for e in context.incident.errors[:1])


def _is_call_in_force(context: Context, found: Explanation) -> bool:
    """True if the text shows the call as the fix would have it, and never as it is in the faulty line."""
    _, cause = context.knowledge.causes.get(found.cause, ("", None))
    if cause is None or found.file:
        return False
    rows = cause.diff.splitlines()
    bad, good = ({key: names for row in rows if row[:1] == sign for key, names in _calls(row[1:])} for sign in "-+")
    changed = [name for name in good if name in bad]
    snapshot = context.incident.snapshot
    shown = [*_calls(f"{snapshot.situation}\n{snapshot.output}\n{snapshot.cell}"[:_MOST])] if changed else []
    for name in changed:
        own = [names for key, names in shown if key == name]
        wrong, right = bad[name] - good[name], good[name] - bad[name]
        if right and any(right <= names for names in own) and not any(wrong & names for names in own):
            return True
    return False


def _calls(text: str) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield (name, names in its arguments) of each call in a text; LOCAL_RANK and local_rank are one name."""
    for found in _CALL.finditer(text):
        yield found["name"], frozenset(n.lower() for n in _NAME.findall(found["arguments"])) - _ANYWHERE


_CALL = lazy_re(r"(?<!\w)(?P<name>[a-z]\w{1,60})\((?P<arguments>[^\n]{1,200})\)")
_NAME = lazy_re(r"[A-Za-z_]\w{1,60}")
_ANYWHERE = frozenset(
    {"int", "str", "os", "environ", "getenv", "get", "dist", "self", "args", "torch", "device", "cuda"}
)
"""Names that say nothing of which value an argument is."""


def _was_opened(context: Context, found: Explanation) -> bool:
    """True if the cause is that a file is not there, and the error is about what the file holds."""
    return found.cause == "data-on-some-hosts-only" and any(_HOLDS.match(e.type) for e in context.incident.errors[:1])


_HOLDS = lazy_re(
    r"(?:\w{1,40}\.){0,6}(?:EOFError|BadGzipFile|BadZipFile|UnpicklingError|UnicodeDecodeError|JSONDecodeError)$"
)
"""Errors of reading that come only after a file was opened."""


def _is_known_first(context: Context, found: Explanation) -> bool:
    """True if the cause is that some rank failed first, and the exception of the one that did is known."""
    return found.cause == "peer-ended-first" and is_explained(context.incident.snapshot.verdict)


_VETOES = (_is_in_force, _is_foreign, _is_on_own_files, _is_call_in_force, _was_opened, _is_known_first)
