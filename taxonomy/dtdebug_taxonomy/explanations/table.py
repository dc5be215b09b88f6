"""The table of explanations: where one can come from, in order of precedence, and what each yields to.

Each rule looks at the context and returns explanations or nothing; none reads another's result. The ranked causes stand
below the first rule that has something to say, unless their first cause is founded so firmly that the rule yields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import msgspec

from dtdebug_taxonomy.explanations import (
    account,
    comparison,
    discovery,
    figures,
    grades,
    group_order,
    hardware_event,
    isolation,
    known_release,
    left_out,
    measured_step,
    message,
    none_value,
    open_store,
    ordinary_errors,
    origin,
    outdated,
    parting,
    process_count,
    rank_file,
    ranked_causes,
    source_check,
    stated_call,
    version_conflict,
)
from dtdebug_taxonomy.explanations.context import Context
from dtdebug_taxonomy.explanations.examples import drop_foreign_examples
from dtdebug_taxonomy.explanations.model import (
    GRADES,
    MAX_EXPLANATIONS,
    Explanation,
    Grade,
    band,
    in_python,
    with_diff,
    without_diff,
)
from dtdebug_taxonomy.explanations.own_edits import places_in_source
from dtdebug_taxonomy.explanations.ranked_causes import Standing, standing_of
from dtdebug_taxonomy.explanations.reckoners import (
    assertions,
    contexts,
    device_memory,
    devices,
    engine_share,
    hosts,
    indices,
    interfaces,
    model_states,
    parameters,
    ports,
    resources,
    shares,
    step_shares,
    time_limits,
    world_size,
)
from dtdebug_taxonomy.explanations.vetoes import drop_vetoed
from dtdebug_taxonomy.text.lazy_re import lazy_re

_WORD = lazy_re(r"[a-z]{3,}")
_ASIDE = lazy_re(r"\([^()]{0,200}\)")
_SENTENCE = 3
"""Least number of words by which a sentence is known again."""


class Rule(NamedTuple):
    """One place where an explanation can come from."""

    name: str
    explain: Callable[[Context], Iterable[Explanation]]
    yields_to: Standing
    """The ranked causes keep the first place if their first one has this standing or a higher one."""
    sharpens: bool = False
    """Having yielded to a cause on the same line, it words that cause's title and fix."""
    second_to: Standing = Standing.NONE
    """Having yielded to a cause of this standing or a lower one, it stands below it if no other rule applies."""
    stays: bool = False
    """It stands below a rule that comes before it."""
    over_words: bool = False
    """True if it yields to no cause that plain words alone point at: a comparison of runs is more than a statement."""
    join: Callable[[Context, Explanation, Sequence[Explanation]], Explanation] | None = None
    """Joins what it found with the ranked cause that says more of it."""


def _raise_cause(_: Context, found: Explanation, ranked: Sequence[Explanation]) -> Explanation:
    """Return the ranked cause that an explanation names, at least as probable; else the explanation itself."""
    same = next((a for a in ranked if a.cause == found.cause), None)
    if same is None:
        return found
    p = max(same.probability, found.probability)
    own = found.because[0]  # the check's message says more than the indicator that it stands for
    because = tuple(
        msgspec.structs.replace(r, means=own.means) if (r.source, r.line) == (own.source, own.line) else r
        for r in same.because
    )
    if because == same.because:
        because = (own, *because)
    return msgspec.structs.replace(same, probability=p, band=band(p), named=True, because=because[:3])


RULES = (
    Rule("isolation", isolation.explain, Standing.PROVEN),
    Rule("measured step", measured_step.explain, Standing.PROVEN),
    Rule("isolated program", isolation.explain_program, Standing.LIKELY, second_to=Standing.SETTLED),
    Rule("store of a failed run", open_store.explain, Standing.PROVEN),
    Rule("order of groups", group_order.explain, Standing.PROVEN),
    Rule("parting of ranks", parting.explain, Standing.PROVEN),
    Rule("hardware that failed first", hardware_event.explain, Standing.PROVEN),
    Rule("step that a rank left out", left_out.explain, Standing.PROVEN),
    Rule("object of an older class", outdated.explain, Standing.PROVEN),
    Rule("contract of a call", account.explain_contract, Standing.PROVEN),
    Rule("value that parts", origin.explain, Standing.PROVEN),
    Rule("known release", known_release.explain, Standing.PROVEN),
    Rule("source check", source_check.explain, Standing.PROVEN),
    Rule("shown source", source_check.explain_shown, Standing.PROVEN, join=_raise_cause),
    Rule("line at which ranks may part", source_check.explain_divergence, Standing.PROVEN),
    Rule("fault where it raised", source_check.explain_at_failure, Standing.SETTLED),
    Rule("value of an error", ordinary_errors.explain, Standing.PROVEN),
    Rule("name that a message lists", source_check.explain_listed_name, Standing.SETTLED),
    Rule("test of a library", account.explain_guard, Standing.SETTLED),
    Rule("room of an engine", engine_share.explain_no_room, Standing.PROVEN),
    Rule("message orders", message.explain_order, Standing.NAMED),
    Rule(
        "finding of the writer",
        discovery.explain_cause,
        Standing.SETTLED,
        second_to=Standing.SETTLED,
        stays=True,
        join=discovery.add_known_cause,
    ),
    Rule("release comparison", comparison.explain_releases, Standing.SETTLED, stays=True),
    Rule("stated releases", comparison.explain_stated_release, Standing.NAMED, stays=True, over_words=True),
    Rule("device comparison", comparison.explain_device, Standing.SETTLED),
    Rule("stated call of one rank", stated_call.explain, Standing.NAMED, over_words=True),
    Rule("resources of Ray", resources.explain, Standing.PROVEN),
    Rule("sides of an assertion", assertions.explain, Standing.NAMED),
    Rule("batch and processes", world_size.explain, Standing.PROVEN),
    Rule("visible devices", devices.explain, Standing.LIKELY),
    Rule("hosts and processes", hosts.explain, Standing.SETTLED, over_words=True),
    Rule("processes on devices", contexts.explain, Standing.NAMED),
    Rule("amounts of an allocator", device_memory.explain, Standing.NAMED),
    Rule("port in use", ports.explain, Standing.PROVEN),
    Rule("share of the steps", step_shares.explain, Standing.NAMED, over_words=True),
    Rule("index and size", indices.explain, Standing.PROVEN),
    Rule("parameters without gradient", parameters.explain, Standing.PROVEN),
    Rule("states of a model", model_states.explain, Standing.SETTLED, over_words=True),
    Rule("uneven shares", shares.explain, Standing.NAMED, over_words=True),
    Rule("figures", figures.explain_misfit, Standing.NAMED, sharpens=True),
    Rule("excess", figures.explain_excess, Standing.NAMED),
    Rule("share of an engine", engine_share.explain, Standing.NAMED, over_words=True),
    Rule("interfaces and their choice", interfaces.explain, Standing.PROVEN),
    Rule("own time limit", time_limits.explain_own, Standing.NAMED, over_words=True),
    Rule("stated time limit", time_limits.explain, Standing.GENERAL),
    Rule("file that ends early", rank_file.explain, Standing.NAMED),
    Rule("process count", process_count.explain, Standing.NAMED),
    Rule("message states a fault", message.explain_fault, Standing.NAMED),
    Rule("message refuses", message.explain_refusal, Standing.OPEN, second_to=Standing.LIKELY),
    Rule("named numbers", figures.explain_named, Standing.GENERAL, sharpens=True),
    Rule("version conflict", version_conflict.explain, Standing.NAMED),
    Rule("None value", none_value.explain, Standing.NAMED),
    Rule(
        "shown source, another symptom",
        source_check.explain_beside,
        Standing.OPEN,
        second_to=Standing.SETTLED,
        join=_raise_cause,
    ),
    Rule(
        "remedy that the writer found",
        discovery.explain_remedy,
        Standing.NAMED,
        second_to=Standing.SETTLED,
        over_words=True,
        join=discovery.add_known_cause,
    ),
    Rule("hint in the shown source", source_check.explain_hint, Standing.OPEN, over_words=True, join=_raise_cause),
    Rule("newer release", comparison.explain_newer_release, Standing.LIKELY),
    Rule("number that scales", comparison.explain_scaled, Standing.LIKELY, over_words=True),
    Rule("factor", comparison.explain_factor, Standing.LIKELY, over_words=True),
    Rule("part", comparison.explain_part, Standing.LIKELY),
    Rule("condition", comparison.explain_condition, Standing.LIKELY),
    Rule("number of devices", comparison.explain_count, Standing.GENERAL),
)
"""In order of precedence: the first rule that applies takes the place above the ranked causes."""
_WORDS = {
    Standing.GENERAL: "any",
    Standing.OPEN: "one of several, or a stronger one",
    Standing.LIKELY: "likely or named",
    Standing.NAMED: "named by the output or a check",
    Standing.SETTLED: "named by a message that only distributed programs print",
    Standing.PROVEN: "(never)",
}


def describe() -> str:
    """Return the table as Markdown, for `docs/how-it-works.md`."""
    rows = [f"| {number} | {rule.name} | {_WORDS[rule.yields_to]} |" for number, rule in enumerate(RULES, 1)]
    return "\n".join(("| | comes from | yields to a ranked cause that is |", "| --- | --- | --- |", *rows))


def explain(context: Context) -> tuple[Explanation, ...]:
    """Return all explanations with their grades, the first one on top; at most `MAX_EXPLANATIONS`."""
    ranked = drop_vetoed(context, ranked_causes.explain(context))
    standing = standing_of(context, ranked)
    of_words = bool(ranked) and GRADES.index(_grade(context, ranked[0])) > GRADES.index("quoted")
    first: tuple[Explanation, ...] = ()
    second: tuple[Explanation, ...] = ()
    for rule in RULES:
        found = tuple(rule.explain(context)) if rule.stays or not first else ()
        if not found:
            continue
        if rule.join is not None:
            found = tuple(rule.join(context, a, ranked) for a in found)
        if standing < rule.yields_to or (rule.over_words and of_words) or found[0].cause == ranked[0].cause:
            first += found
        elif rule.sharpens and _is_of_same(found[0], ranked[0]):
            ranked = (msgspec.structs.replace(ranked[0], title=found[0].title, fix=found[0].fix), *ranked[1:])
        elif standing <= rule.second_to:
            second = second or found
    causes = {a.cause for a in first}
    ranked = tuple(a for a in ranked if a.cause not in causes)
    rows = (*first, *ranked) if first else (*ranked[:1], *second, *ranked[1:])
    rows = _with_edit_of_line(context, _lead_with_own_line(context, rows))
    # of rows with one diff, the first shows it
    rows = tuple(without_diff(a) if a.diff and a.diff in {b.diff for b in rows[:n]} else a for n, a in enumerate(rows))
    rows = _cap_bands(context, drop_foreign_examples(context.incident.snapshot, rows[:MAX_EXPLANATIONS]))
    return _finish(context, rows)


def _lead_with_own_line(context: Context, rows: tuple[Explanation, ...]) -> tuple[Explanation, ...]:
    """Put a cause with a diff of the very line that failed above one that only repeats the message."""
    raised = {(f.file, f.line) for e in context.incident.errors for f in e.frames}
    if not rows or rows[0].diff or rows[0].because[0].evidence != message.EVIDENCE:
        return rows
    own = next((a for a in rows if a.diff_of == "yours" and (a.file, a.line) in raised), None)
    return rows if own is None else (own, *(a for a in rows if a is not own))


def _with_edit_of_line(context: Context, rows: tuple[Explanation, ...]) -> tuple[Explanation, ...]:
    """Give an account without a diff that of a check which finds a fault on its line, or where the culprits stand."""
    if not rows or rows[0].diff or not rows[0].because[0].of_account:
        return rows
    verdict = context.incident.snapshot.verdict
    culprits = [s for s in verdict.sites if s.rank in verdict.culprits] if verdict is not None else []
    places = {(rows[0].file, rows[0].line), *((s.file, s.line) for s in culprits)}
    seen = places_in_source(context.knowledge, context.incident.snapshot, context.findings)
    found = next((f for f in seen if f.check and f.diff and not f.hint and (f.file, f.line) in places), None)
    if found is None:
        return rows
    edited = msgspec.structs.replace(rows[0], fix=found.fix or rows[0].fix)
    return (with_diff(edited, found.diff, file=found.file, line=found.line), *rows[1:])


def explain_alone(context: Context) -> tuple[Explanation, ...]:
    """Return what explains a program of one process: what runs and the account of its exception show."""
    found = isolation.explain_all(context)
    for rule in (account.explain_contract, ordinary_errors.explain, account.explain_guard):
        found = found or tuple(rule(context))
    return _finish(context, found)


def _finish(context: Context, rows: Iterable[Explanation]) -> tuple[Explanation, ...]:
    graded = (grades.grade(context.knowledge, context.findings, a) for a in rows)
    return tuple(msgspec.structs.replace(a, in_python=in_python(a.diff)) for a in graded)


def _grade(context: Context, found: Explanation) -> Grade:
    return grades.grade(context.knowledge, context.findings, found).grade


def _is_printed(found: Explanation) -> bool:
    return found.named and found.because[0].source in ("printed", "exception")


def _is_of_same(one: Explanation, other: Explanation) -> bool:
    """True if two explanations rest on one line, or on one sentence that the text has twice: in its title, say."""
    mine, theirs = one.because[0], other.because[0]
    if (mine.source, mine.line) == (theirs.source, theirs.line):
        return True
    words = {*_WORD.findall(_ASIDE.sub("", theirs.words.lower()))}
    return len(words) >= _SENTENCE and words <= {*_WORD.findall(mine.words.lower())}


def _cap_bands(context: Context, rows: tuple[Explanation, ...]) -> tuple[Explanation, ...]:
    """Cap each band at that of the first explanation, so that the list never looks inverted.

    Where the ranks may only be slow, what is wrong is possible at best, unless the output names it.
    """
    verdict = context.incident.snapshot.verdict
    if verdict is not None and verdict.open:
        rows = tuple(
            msgspec.structs.replace(a, band="possible") if a.band == "likely" and not _is_printed(a) else a
            for a in rows
        )
    if not rows or rows[0].band == "likely":
        return rows
    return tuple(msgspec.structs.replace(a, band=rows[0].band) if a.band == "likely" else a for a in rows)


if __name__ == "__main__":
    print(describe())
