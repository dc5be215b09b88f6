"""Numbers in a final error that do not fit, and the values that would.

One does not divide the other, a product is not met, more is requested than there is, or fewer ranks came.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import prod
from typing import NamedTuple

from dtdebug_taxonomy.explanations.context import Context
from dtdebug_taxonomy.explanations.model import (
    WORKED_OUT,
    Explanation,
    explanation_for,
    printed_reason,
    reason_of_figures,
)
from dtdebug_taxonomy.text.lazy_re import lazy_re

_N = r"\d{1,9}"
_NAME = r"[`'\"(]?(?P<{0}>[A-Za-z_][\w./-]{{2,50}}(?: [A-Za-z][\w-]{{1,20}}){{0,3}})[`'\"]?"
_VALUE = r"(?: ?[(\[=:]{{1,2}} ?| (?:is|of|was) | )[`'\"]?(?P<{0}>\d{{1,9}})\b[)`'\"\]]{{0,3}}"
_ONE = _NAME.format("what") + _VALUE.format("a")
_LONG = _NAME.replace("{{0,3}})", "{{0,6}})")
_FACTORS = rf" ?[(=:]{{1,2}} ?(?P<factors>{_N}(?: ?[*x\u00d7] ?{_N}){{1,4}})\)?"
"""A product instead of a value: `batch size (2 x 3)`."""
_OTHER = r"(?:the )?" + _LONG.format("by") + _VALUE.format("b")
_NOT = (
    r"(?:is not|must be|should be|has to be|needs to be|isn't|not) (?:evenly )?"
    r"(?:divisible by|a multiple of|multiple of)"
)
_TERM = r"(?P<{0}>[A-Za-z_][\w./-]{{2,50}}(?: [A-Za-z_][\w-]{{1,30}}){{0,6}}?)"
_PAIR = (
    lazy_re(
        rf"(?i)(?:^|[,.;:(] ?|\b(?:the|that|your|a) )[`'\"]?{_TERM.format('what')}[`'\"]?"
        r"(?: ?\((?P<factors>[^()\d]{3,80}\*[^()\d]{3,80})\))?,? (?:must|should|has to|have to|needs? to) be"
        r" (?:evenly )?(?:divisible by|a multiple of) (?:the |your |a )?"
        rf"[`'\"]?{_TERM.format('by')}[`'\"]?(?=\s*(?:$|[.,;:!?)(]|and\b))"
    ),
    lazy_re(
        rf"(?i)\b(?:has|have|does|do|needs?) (?:the |my |our )?{_TERM.format('what')}(?P<factors>)"
        r" (?:have |need )?to be (?:evenly )?"
        rf"(?:divisible by|a multiple of) (?:the |your |a )?{_TERM.format('by')}"
        r"(?=\s*(?:$|[.,;:!?)(]|and\b))"
    ),
)
"""A demand that names both sides, without their figures."""
_ARTICLE = lazy_re(r"(?i)^(?:the|your|a) ")
_PRONOUN = lazy_re(r"(?i)(?:it|this|that|them|\d.*)$")
_DIVIDES = (
    lazy_re(
        rf"{_NAME.format('what')}{_FACTORS},? {_NOT} (?:the )?"
        rf"(?:{_LONG.format('by')}{_VALUE.format('b')}|(?P<b3>{_N})\b)"
    ),
    lazy_re(rf"{_ONE},? {_NOT} {_OTHER}(?: (?:times|[*x]) {_NAME.format('by2')}{_VALUE.format('b2')})?"),
    lazy_re(rf"{_ONE},? {_NOT} (?P<b>{_N})\b"),
    lazy_re(rf"(?<![\w.])(?P<a>{_N}) {_NOT} (?P<b>{_N})\b"),
    lazy_re(
        rf"(?i)(?:chunk|split)\S{{0,3}} .{{0,30}}\bsize of (?P<what>\w{{2,40}}) (?P<a>{_N})"
        rf" and (?P<by>chunks?|splits?) (?P<b>{_N})\b"
    ),
    lazy_re(rf"(?<![\w.%-])(?P<a>{_N}) ?% ?(?P<b>{_N}) ?!= ?0\b"),
)
_PRODUCT = (
    lazy_re(rf"(?<![\w.-])(?P<a>{_N}) ?!= ?(?P<rest>{_N}(?: ?[*x] ?{_N}){{1,4}})(?![\w.])"),
    lazy_re(
        rf"(?P<what>[A-Za-z_]\w{{2,50}}) ?\(?(?P<a>{_N})\)? (?:is not equal to|must be equal to|does not match|!=) "
        rf"(?P<rest>\w{{2,50}} ?\({_N}\)(?: ?[*x] ?\w{{2,50}} ?\({_N}\)){{1,4}})"
    ),
)
_MORE = lazy_re(
    rf"{_ONE},? (?:is |was )?(?:must not be |should not be |can ?not be )?"
    rf"(?:larger than|greater than|more than|exceeds|exceeding|bigger than) (?:the )?(?:available |maximum )?"
    rf"{_NAME.format('by')}{_VALUE.format('b')}"
)
_CAME = lazy_re(
    rf"world_size=(?P<b>{_N}), (?:worker_count|num_workers_joined)=(?P<a>{_N})"
    rf"|(?P<came>{_N})/(?P<of>{_N}) (?:clients|workers|processes) joined"
    rf"|Id: \[?(?:PjRT_Client|Init\]).{{0,300}}tasks that reached the barrier: (?P<came2>{_N})/(?P<of2>{_N})\b"
)
"""Number of ranks that had reached a barrier of a store."""
_BLOCK = lazy_re(
    r"Tried to allocate (?P<a>\d{1,7}(?:\.\d{1,3})?) GiB.{1,80}?"
    r"(?:capacity of (?P<b>\d{1,5}(?:\.\d{1,3})?) GiB|(?P<b2>\d{1,5}(?:\.\d{1,3})?) GiB total capacity)"
)
_ABSENT = lazy_re(r"(?i)timed out task names: (?P<names>(?:/job:[\w/:.-]{1,80},? ?){1,8})")
"""Names of the tasks that a coordinator has missed."""
_PARALLEL = lazy_re(r"(?i)world_?size|parallel|n_gpus|num_gpus|nnodes|nproc|replica")
"""Names of what is set by the number of processes: the other figure is the one to change."""
_OF_MODEL = lazy_re(r"(?i)head|layer|hidden|vocab|expert|dim|channel|size of the model|embed|world_?size|gpus?\b")
"""Names of what the model or the machines set."""
_LONGEST = 400
_PROBABILITY = 0.5


class Misfit(NamedTuple):
    """A misfit of numbers, and the values that would fit."""

    title: str
    fix: str
    words: str
    """The words of the message with the figures."""
    worked_out: bool = True
    """It names figures that would do, which no other text about the failure does."""


def explain_misfit(context: Context) -> Iterator[Explanation]:
    """Yield the values that do not fit and what would, worked out from the first final error that has them."""
    return _explain(context, worked_out=True)


def explain_named(context: Context) -> Iterator[Explanation]:
    """Yield which of two named numbers has to be a multiple of the other, where a text states it without figures."""
    text = context.incident.texts
    for found in (m for p in _PAIR for m in p.finditer(text)):
        what, by = _ARTICLE.sub("", found["what"]), found["by"]
        if _PRONOUN.match(by) or _PRONOUN.match(what):
            continue
        factors = f": change one of {found['factors'].strip()}" if found["factors"] else ", by one of its factors"
        yield explanation_for(
            context.symptom,
            f"{what[0].upper()}{what[1:]} has to be a multiple of {by}",
            "What is shared out in equal parts has to hold a whole number of them.",
            f"Make {what} a multiple of {by}{factors}; or choose {by} so that it divides {what}.",
            _PROBABILITY,
            reason_of_figures(
                context.incident, "named-numbers-do-not-go-together", found, "The text names both numbers."
            ),
            pattern="fix batch size/data partition",
        )
        return


def explain_excess(context: Context) -> Iterator[Explanation]:
    """Yield the request that is larger than what there is."""
    return _explain(context, worked_out=False)


def _explain(context: Context, *, worked_out: bool) -> Iterator[Explanation]:
    for error in context.incident.errors:
        found = find_misfit("\n".join((error.message, *error.below)))
        if found is not None and found.worked_out == worked_out:
            yield explanation_for(
                context.symptom,
                found.title,
                "Worked out from the figures that the message prints.",
                found.fix,
                _PROBABILITY,
                printed_reason(error, "figures-do-not-go-together", WORKED_OUT, found.words),
            )
            return


def find_misfit(message: str) -> Misfit | None:
    """Return the numbers of a message that do not fit, or None."""
    text = " ".join(message[:4_000].split())
    for found in filter(None, (p.search(text) for p in _DIVIDES)):
        if (told := _division(found)) is not None:
            return told
    for found in filter(None, (p.search(text) for p in _PRODUCT)):
        if (told := _product(found)) is not None:
            return told
    if (came := _CAME.search(text)) is not None:
        return _arrivals(came)
    block = _BLOCK.search(text)
    if block is not None and float(block["a"]) > float(whole := block["b"] or block["b2"]):
        return Misfit(
            f"One tensor of {block['a']} GiB is asked for, and the whole GPU has {whole} GiB",
            "Look at the line that is named for a size that is not meant: an attention matrix over a long sequence,"
            " scores over the whole vocabulary, a gathered or flattened tensor of all ranks.",
            block[0][:_LONGEST],
            worked_out=False,
        )
    more = _MORE.search(text)
    if more is not None and int(more["a"]) > int(more["b"]):
        return Misfit(
            f"{more['what']} is {more['a']}, but {more['by']} is {more['b']}",
            f"Set {more['what']} to at most {more['b']}, or give this process more: if the rest is on other hosts, they"
            " are not seen from here, and what joins them (the launcher, Ray, the number of nodes) is not told.",
            more[0][:_LONGEST],
            worked_out=False,
        )
    return None


def _arrivals(found: re.Match[str]) -> Misfit | None:
    came, world = int(found["a"] or found["came"] or found["came2"]), int(found["b"] or found["of"] or found["of2"])
    absent = _ABSENT.search(found.string)
    if came < world:
        rest = f"{absent['names'].strip(' ,')} was" if absent is not None else "the rest was"
        return Misfit(
            f"Only {came} of {world} ranks came: {rest} not started, has ended, or cannot reach the master",
            f"Count the processes that were started on all hosts: the world size is {world}. Start the launcher on each"
            " host with its own node rank and the same master address; where all of them run, look at the output of"
            " those that wait for nobody.",
            found[0],
        )
    if came > world:
        return Misfit(
            f"{came} came where {world} ranks are expected: two jobs, or two attempts, share one store",
            "Give each job its own port (`--rdzv-endpoint=localhost:0`, another MASTER_PORT) and end what is left of"
            " the run before.",
            found[0],
        )
    return None


def _division(found: re.Match[str]) -> Misfit | None:
    seen = found.groupdict()
    a = prod(int(n) for n in re.findall(_N, seen.get("factors") or found["a"]))
    b = int(found["b"] or seen["b3"]) * int(seen.get("b2") or 1)
    if b < 2 or a % b == 0:
        return None
    what, by = _ARTICLE.sub("", seen.get("what") or ""), seen.get("by") or ""
    if seen.get("by2"):
        by = f"{by} x {seen['by2']} ="
    below, above = a // b * b, (a // b + 1) * b
    whole = f"{below} or {above}" if below else f"{above} or {2 * above}" if seen.get("factors") else f"{above}"
    one = f"{what} {seen['factors']} = {a}" if seen.get("factors") else f"{what} {a}" if what else f"{a}"
    other = f"{by} {b}" if by else f"{b}"
    larger = f"make {what or f'the {a}'} a multiple of {b} ({whole})"
    smaller = f"choose {by.rstrip(' =') or f'the {b}'} so that it divides {a} ({_divisors(a)})"
    first, second = (smaller, larger) if _OF_MODEL.search(what) else (larger, smaller)
    if seen.get("factors"):
        first, second = f"{larger}: change one of the factors {seen['factors']}", smaller
    fix = f"{first[0].upper()}{first[1:]}{f'; or {second}' if a > 1 else ''}."
    return Misfit(f"{one} is not a multiple of {other}", fix, found[0][:_LONGEST])


def _divisors(number: int) -> str:
    small = [n for n in range(1, min(number, 1_024) + 1) if number % n == 0]
    return ", ".join(str(n) for n in small[-6:]) if len(small) > 6 else ", ".join(str(n) for n in small)


def _product(found: re.Match[str]) -> Misfit | None:
    a = int(found["a"])
    factors = [int(n) for n in re.findall(rf"(?<![\w.]){_N}(?!\w)", found["rest"])]
    whole = prod(factors)
    if len(factors) < 2 or whole == a or not whole:
        return None
    what = found.groupdict().get("what") or "what is asked"
    product = " x ".join(str(n) for n in factors)
    last = factors[-1]
    fix = f"Make it {whole}, or change one factor of {product} (= {whole}) so that the product is {a}"
    if a % last:
        fix = (
            f"{a} is not a multiple of {last}: make it {whole}, or another multiple of {last}, and the other factors to"
            " match"
        )
    if _PARALLEL.search(what):
        fix = f"Start {whole} processes, or set the sizes so that their product is {a}"
    return Misfit(f"{what} is {a}, but {product} is {whole}", f"{fix}.", found[0][:_LONGEST])
