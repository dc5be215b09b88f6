"""Resources asked of Ray against those that are there or free. Unit: logical CPUs or GPUs.

Rule: a task, actor or placement group is scheduled only where all that it asks for is free (Ray, "Resources",
https://docs.ray.io/en/latest/ray-core/scheduling/resources.html).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from dtdebug_taxonomy.explanations.context import Context
from dtdebug_taxonomy.explanations.model import WORKED_OUT, Explanation, Reason, explanation_for, reason_of_figures
from dtdebug_taxonomy.text.lazy_re import lazy_re
from dtdebug_taxonomy.text.number_words import NUMBER, read_number
from dtdebug_taxonomy.text.pattern_matcher import clip_lines, plain

_NAMES = ("GPU", "CPU")
_BUNDLE = lazy_re(r"\{(?P<items>[^{}\n]{1,200})\}(?: ?\* ?(?P<times>\d{1,5}))?")
_ITEM = lazy_re(r"['\"]?\b(?P<name>[CG]PU)s?['\"]?: ?(?P<n>\d{1,6}(?:\.\d{1,9})?)")
_ASKED = lazy_re(
    r"(?i)(?:specs=\[|resource request|required resources[^:\n]{0,60}:|demands?:|request_resources|it requires"
    r"|cannot be scheduled)"
)
_USED = lazy_re(r"(?<![\w.])(?P<used>\d{1,6}(?:\.\d{1,9})?)/(?P<all>\d{1,6}(?:\.\d{1,9})?) (?P<name>[CG]PU)s?\b")
_FREE = lazy_re(r"(?i)available resources|remaining")
_WORKERS = lazy_re(r"(?s)num_workers ?= ?(?P<n>\d{1,4})\b[^\n]{0,80}?use_gpu ?= ?True")
_WAITS = lazy_re(
    r"(?i)\bpending\b|waiting for|cannot be scheduled|can ?not be scheduled|no available node|insufficient"
)
_SHORT = lazy_re(
    r"(?i)\bavailable (?P<name>[CG]PU)s?:? ?\(?(?P<there>\d{1,6}(?:\.\d{1,3})?)\)? (?:is |are )?"
    r"(?:less|fewer|lower|smaller) than"
    r" (?:\w{2,12} ){0,3}[CG]PUs?:? ?\(?(?P<wanted>\d{1,6}(?:\.\d{1,3})?)"
)
"""A program's own comparison of what Ray has with what it asks for."""
_NODES = lazy_re(rf"(?i)(?<![\w.-])(?P<n>{NUMBER}) (?:nodes|machines|hosts|servers)\b")
_MOST = 200


class _Stock(NamedTuple):
    free: float
    whole: float
    line: int
    words: str


def explain(context: Context) -> Iterator[Explanation]:
    """Yield the resource of which more is asked for than there is, or than is free."""
    output = clip_lines(context.incident.snapshot.output)
    short = _SHORT.search(context.incident.printed)
    if short is not None:
        yield _of_comparison(context, short)
        return
    if not _WAITS.search(output):
        return
    asked, stock = _most_asked(output, context.incident.prose.text), _stock(output)
    for name in _NAMES:
        wanted, there = asked[name], stock.get(name)
        if there is None and wanted and stock:  # a status that lists other resources and not this one
            first = next(iter(stock.values()))
            there = _Stock(0.0, 0.0, first.line, first.words)
        if wanted and there is not None and wanted > there.free:
            yield _explanation(context.symptom, name, wanted, there)
            return


def _most_asked(output: str, words: str) -> dict[str, float]:
    """Return the most that is asked for at once, by resource."""
    found = dict.fromkeys(_NAMES, 0.0)
    for begin in islice(_ASKED.finditer(output), _MOST):
        specs = begin[0].lower().startswith("specs")
        line = output[begin.end() : begin.end() + 400].split("]" if specs else "\n\n", 1)[0]
        whole = dict.fromkeys(_NAMES, 0.0)
        for bundle in _BUNDLE.finditer(line):
            for item in _ITEM.finditer(bundle["items"]):
                whole[item["name"]] += float(item["n"]) * int(bundle["times"] or 1)
            if not specs:
                break
        found = {name: max(found[name], whole[name]) for name in _NAMES}
    workers = _WORKERS.search(words)
    if workers is not None:
        found["GPU"] = max(found["GPU"], int(workers["n"]))
    return found


def _stock(output: str) -> dict[str, _Stock]:
    """Return what is free and what there is; "available" lists name what is free, the others what is used."""
    found: dict[str, _Stock] = {}
    for m in islice(_USED.finditer(output), _MOST):
        start = output.rfind("\n", 0, m.start()) + 1
        line = output[start:].split("\n", 1)[0]
        one, whole = float(m["used"]), float(m["all"])
        free = one if _FREE.search(line) else whole - one
        found[m["name"]] = _Stock(free, whole, output.count("\n", 0, m.start()) + 1, plain(line.strip())[:200])
    return found


def _of_comparison(context: Context, found: re.Match[str]) -> Explanation:
    """Return what the figures of a message say: where they differ by the number of nodes, one node is seen."""
    there, wanted, name = float(found["there"]), float(found["wanted"]), found["name"].upper()
    stated = {read_number(m["n"]) for m in _NODES.finditer(context.incident.prose.text)}
    nodes = int(wanted / there) if there and wanted % there == 0 else 0
    title = f"{wanted:g} {name}s are asked of Ray, and it knows {there:g}"
    fix = (
        f"Compare `ray status` with the hosts: end what holds {name}s, let missing nodes join, or ask for {there:g} at"
        " most."
    )
    why = "Ray starts an actor only where all that it asks for is there."
    if nodes > 1 and nodes in stated:
        why = "A driver without an address starts a Ray of its own, which knows only the node that it runs on."
        title += f", which is one of the {nodes} nodes"
        fix = (
            "Join the cluster that `ray start` made instead of starting one on this node:"
            ' `ray.init(address="auto")`, or RAY_ADDRESS. `ray status` has to show all nodes before.'
        )
    return explanation_for(
        context.symptom,
        title,
        why,
        fix,
        0.6,
        reason_of_figures(context.incident, "resources-do-not-suffice", found),
        pattern="fix device assignment",
    )


def _explanation(symptom: str, name: str, wanted: float, there: _Stock) -> Explanation:
    asked = f"1 {name} is" if wanted == 1 else f"{wanted:g} {name}s are"
    if wanted > there.whole:
        title = f"{asked} asked of Ray, and it knows {there.whole:g}"
        fix = (
            f"Ask for at most {there.whole:g}, or let the missing ones join: compare `ray status` with the hosts,"
            f" and pass `num_{name.lower()}s` to `ray start` or `ray.init` where Ray does not see them."
        )
        if there.whole == 0:
            fix = (
                f"Make Ray see the {name}s: start it where `nvidia-smi` shows them, without an empty"
                f" CUDA_VISIBLE_DEVICES, or with `num_{name.lower()}s=N`; else ask for none."
            )
    else:
        title = f"{asked} asked of Ray, and {there.free:g} of {there.whole:g} free"
        fix = f"End what holds the {name}s (`ray list actors` shows it; an earlier run may)"
        fix += f", or ask for {there.free:g} at most." if there.free else "."
    return explanation_for(
        symptom,
        title,
        "Ray starts an actor only where all that it asks for is free, and waits without an error until then.",
        fix,
        0.6,
        Reason(
            evidence="resources-do-not-suffice",
            means=WORKED_OUT,
            source="printed",
            weight=1.5,
            line=there.line,
            words=there.words,
        ),
        pattern="fix device assignment",
    )
