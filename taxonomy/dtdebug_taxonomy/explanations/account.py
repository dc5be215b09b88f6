"""Explains by the accounts of failed ranks: a contract that is broken, a test of a library with its operands.

Nothing is said that the values do not show: where one is missing, there is no explanation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from dtdebug_taxonomy.explanations import account_edits, off_stack
from dtdebug_taxonomy.explanations.account_words import diff_of, ranks_of, to_change, where
from dtdebug_taxonomy.explanations.context import Context
from dtdebug_taxonomy.explanations.contract_repairs import parted_argument, taken_for_ranks, values_by_rank
from dtdebug_taxonomy.explanations.deciding_lines import (
    ENDED,
    compared_values,
    decided_clause,
    deciding_link,
    is_same_line,
    links_of,
    making_link,
)
from dtdebug_taxonomy.explanations.faults import TEXT_FOR_NUMBER
from dtdebug_taxonomy.explanations.lost_fraction import dividing_link
from dtdebug_taxonomy.explanations.missing_attribute import show_what_was_caught
from dtdebug_taxonomy.explanations.model import Explanation, Reason, explanation_for, with_diff
from dtdebug_taxonomy.explanations.short_batch import FIX, find_short_batch
from dtdebug_taxonomy.inference.account_call import names_in_words
from dtdebug_taxonomy.inference.contracts import Broken, Parted, broken_contract, parted_contract
from dtdebug_taxonomy.inference.guards import decisive_test
from dtdebug_taxonomy.logs.exception_roles import role_of
from dtdebug_taxonomy.model.account import Account, Link, NamedValue, Place, Refusal
from dtdebug_taxonomy.model.rank_ranges import ranges
from dtdebug_taxonomy.stacks.frames import is_library
from dtdebug_taxonomy.text.contract_call import UnknownSlotError, fill, short_name, show
from dtdebug_taxonomy.text.demands import UnknownTermError, sides, value_of
from dtdebug_taxonomy.text.pattern_matcher import plain
from dtdebug_taxonomy.text.value_texts import read_value

_SURE, _GUARD, _CALL = 0.9, 0.7, 0.5
"""Probabilities of a broken contract, of the test that raised, and of the arguments of a call that failed."""
_MOST_VALUES = 4
_ONE_VALUE = "Give all ranks of the group one value, a global rank that is a member."
_SET_UP = "group-is-set-up"
_OF_TEXT = re.compile(r"'str'|\bstr\b")
"""Messages that refuse a string."""


def explain_contract(context: Context) -> Iterator[Explanation]:
    """Yield the contract that the values of a rank break, or that the ranks break together."""
    accounts = by_culprit(context)
    if (parted := parted_contract(accounts)) is not None:
        yield _of_ranks(context, parted)
        return
    broken = [found for account in accounts if (found := broken_contract(account)) is not None]
    for found in broken:
        alike = [b for b in broken if b.contract is found.contract]
        try:
            yield _of_contract(context, found, alike, accounts, _at_once(found, broken))
        except UnknownSlotError:
            continue
        return


def explain_guard(context: Context) -> Iterator[Explanation]:
    """Yield the test over the line that raised with what it compared, or the arguments of a compiled call.

    Only of ranks that a verdict blames: the others failed because their peer was gone.
    """
    verdict = context.incident.snapshot.verdict
    blamed = verdict.culprits if verdict is not None else ()
    accounts = tuple(a for a in by_culprit(context) if not blamed or a.rank in blamed or a.rank is None)
    for account in accounts:
        if account.refusal is not None and (found := _of_guard(context, account, account.refusal, accounts)):
            yield found
            return


def by_culprit(context: Context) -> tuple[Account, ...]:
    """Return the accounts, those of ranks that a verdict blames first; none of another process's failure."""
    snapshot = context.incident.snapshot
    culprits = snapshot.verdict.culprits if snapshot.verdict is not None else ()
    own = (a for a in snapshot.accounts if role_of(a.exception) != "launcher")
    return tuple(sorted(own, key=lambda a: (a.rank not in culprits, a.rank is None, a.rank or 0)))


def reason_from(account: Account, evidence: str) -> Reason:
    """Return an account as the reason of an explanation: measured if it has values, else shown by the source."""
    place = account.place
    return Reason(
        evidence=evidence,
        means="The values at the line that failed.",
        of_account=True,
        source="measured" if account.with_values else "checked",
        weight=2.5,
        line=place.line if place else 0,
        words=place.code if place else "",
        rank=account.rank,
        file=place.file if place else "",
    )


def _at_once(found: Broken, broken: Sequence[Broken]) -> Sequence[Broken]:
    """Return what the ranks broke on the line of one of them."""
    return [b for b in broken if _line_of(b.account) == _line_of(found.account)]


def _line_of(account: Account) -> tuple[str, int]:
    return (account.place.file, account.place.line) if account.place is not None else ("", 0)


def _of_contract(
    context: Context,
    found: Broken,
    alike: Sequence[Broken],
    accounts: Sequence[Account],
    at_once: Sequence[Broken],
) -> Explanation:
    contract, account, call = found
    if contract.id == _SET_UP and (missing := off_stack.missing_set_up(account)) is not None:
        return _of_set_up(context, found, alike, accounts, missing)
    links = () if contract.here else links_of(found)
    link = links[0] if links else None
    try:
        said = fill(contract.says, call)
    except UnknownSlotError:
        if not contract.asks:
            raise
        said = fill(contract.asks, call)
    typed = account_edits.typed_option(link)
    edit = typed or account_edits.of_contract(found, link, at_once)
    if parted := parted_argument(found, at_once):
        rows = values_by_rank(parted, at_once)
        said += f"; it is {', '.join(f'{value} on rank {ranges(ranks)}' for value, ranks in rows.items())}"
        link = making_link(account, call.words(parted))
        links = (link,) if link is not None else ()
    short = find_short_batch(account, _numbers_of(found)) if edit is None else None
    if short is not None:
        links, link, edit, said = (short.made,), short.made, short.edit, f"{said}: {short.said}"
    title = f"{_rank_prefix(account, alike, accounts)}{said}{decided_clause(account, *links)}"
    place = edit.place if edit is not None else link.place if link is not None else account.place
    fix = account_edits.UNTYPED if typed is not None else fill(contract.fix, call, strict=False)
    fix = FIX if short is not None else _ONE_VALUE if parted else fix
    if (
        typed is None
        and link is not None
        and link.how == "option"
        and (option := account_edits.option_to_pass(found, link))
    ):
        fix = f"Pass `{option}`, or edit {where(link.place)}: {_lower(fix)}"
    elif link is not None and place is not None and link == taken_for_ranks(found):
        size = call.scope.values.get("members") or call.scope.values["world_size"]
        fix = f"Edit {where(place)}: `{link.value.name}` is used as the number of ranks, which is {size.plain}."
    elif place is not None:
        place = account.place if link is not None and link.how == "tested" and account.place is not None else place
        fix = f"{to_change(place, link)}: {_lower(fix)}"
    if link is not None and link.how == "caught":
        fix = f"Edit {where(link.place)}: {show_what_was_caught(link)}"
    told = _explanation(context, account, title, fix, _SURE, contract.id, _why(alike, accounts), edit, place)
    return replace(told, settled=edit.meant if edit is not None else not parted and _is_settled(found, link))


def _numbers_of(found: Broken) -> set[int]:
    """Return the numbers that a demand compares, and the first sizes of what it is about."""
    shapes = (value.shape for value in found.call.scope.values.values() if value.shape)
    return {*(int(text) for text in compared_values(found) if text.isdigit()), *(shape[0] for shape in shapes)}


def _of_set_up(
    context: Context, found: Broken, alike: Sequence[Broken], accounts: Sequence[Account], missing: off_stack.Missing
) -> Explanation:
    """Return the explanation of a call that comes before the process group, by what kept it from being set up."""
    contract, account, call = found
    said = fill(contract.asks, call).partition(":")[0] if missing.said else fill(contract.says, call)
    clause = f": {missing.said}" if missing.said else decided_clause(account)
    place = missing.at or (missing.link.place if missing.link is not None else account.place)
    fix = missing.fix or _lower(fill(contract.fix, call, strict=False))
    by_option = missing.link is not None and missing.link.how == "option"
    fix = f"Edit {where(place)}: {fix}" if place is not None and not by_option else f"{fix[:1].upper()}{fix[1:]}"
    title = f"{_rank_prefix(account, alike, accounts)}{said}{clause}"
    why = _why(alike, accounts)
    told = _explanation(context, account, title, fix, _SURE, contract.id, why, missing.edit, place)
    return replace(told, settled=bool(missing.said))


def _is_settled(found: Broken, link: Link | None) -> bool:
    """True if the place to edit is known: the call itself, or the literal, option or file that a demand compares."""
    contract, account, call = found
    if contract.here or contract.instead or not contract.about:
        return True
    if link is None:
        words = call.expressions.get(contract.about, ("", (0, 0)))[0]
        return not names_in_words(words) and account.place is not None
    return link.how in ENDED and link.value.text in compared_values(found)


def _explanation(  # noqa: PLR0917
    context: Context,
    account: Account,
    title: str,
    fix: str,
    probability: float,
    evidence: str,
    why: str,
    edit: account_edits.Edit | None = None,
    place: Place | None = None,
) -> Explanation:
    reason = reason_from(account, evidence)
    found = explanation_for(context.symptom, plain(title, 500), why, plain(fix, 500), probability, reason)
    diff = diff_of(edit, context.incident.snapshot.excerpts) if edit is not None else ""
    found = with_diff(found, diff)
    return found if place is None else replace(found, file=place.file, line=place.line)


def _lower(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]


def _rank_prefix(account: Account, alike: Sequence[Broken], accounts: Sequence[Account]) -> str:
    """Return "Rank 1: " where other ranks failed in another way, or are known not to have failed."""
    ranks = ranks_of(b.account for b in alike)
    others = {*ranks_of(accounts)} - {*ranks}
    if not ranks or (len(ranks) == 1 and not others):
        return f"Rank {account.rank}: " if account.rank is not None and _world(account) not in {None, 1} else ""
    return f"Rank{'s' if len(ranks) > 1 else ''} {ranges(ranks)}: " if others else ""


def _world(account: Account) -> int | None:
    size = next((fact.text for fact in account.facts if fact.name == "world size"), "")
    return int(size) if size.isdigit() else None


def _why(alike: Sequence[Broken], accounts: Sequence[Account]) -> str:
    """Return what a comparison of the ranks says; empty for a single account."""
    ranks = ranks_of(b.account for b in alike)
    if len(ranks) > 1 and ranks == ranks_of(accounts):
        values = {rank_value(b) for b in alike}
        if len(values) == 1:
            return f"Ranks {ranges(ranks)} failed with the same values: the program is wrong, not a rank's data."
        rows = ", ".join(f"{rank_value(b)} on rank {b.account.rank}" for b in alike[:_MOST_VALUES])
        return f"The value differs from rank to rank: {rows}."
    if len(accounts) > len(alike):
        return f"The other ranks that failed ({ranges({*ranks_of(accounts)} - {*ranks})}) do not break it."
    return "The values at the line that failed do not meet what the call asks for."


def rank_value(broken: Broken) -> str:
    """Return what the demand compared on one rank, as text."""
    left, _, _ = sides(broken.contract.demand)
    try:
        return show(value_of(left, broken.call.scope)) if left else ""
    except UnknownTermError:
        return ""


def _of_ranks(context: Context, parted: Parted) -> Explanation:
    contract, what, rows = parted
    account, call, _ = rows[0]
    counts = {value: sum(other == value for _, _, other in rows) for _, _, value in rows}
    odd = min(rows, key=lambda row: counts[row[2]])
    about = contract.about if contract.about in call.expressions else next(iter(call.expressions), contract.about)
    shown = ", ".join(
        f"{show(value)} on rank{'s' if len(ranks) > 1 else ''} {ranges(ranks)}"
        for value in list(counts)[:_MOST_VALUES]
        if (ranks := [a.rank for a, _, other in rows if other == value and a.rank is not None])
    )
    link = deciding_link(odd[0], odd[1].words(about))
    title = (
        f"{fill(contract.says, call, {'what': what})}: `{call.words(about)}` has {shown}{decided_clause(odd[0], link)}"
    )
    place = link.place if link is not None else account.place
    fix = fill(contract.fix, call, {"what": what}, strict=False)
    fix = f"Edit {where(place)}: {_lower(fix)}" if place is not None else fix
    why = "The same line got different values: a rank's data or its place in the group decides them."
    return _explanation(context, odd[0], title, fix, _SURE, contract.id, why)


def _of_guard(context: Context, account: Account, refusal: Refusal, accounts: Sequence[Account]) -> Explanation | None:
    test = decisive_test(refusal)
    own = refusal.place is None or not is_library(refusal.place.file)
    if own and not (refusal.tests and account.exception.startswith("AssertionError")):
        return None  # the message of the program's own raise says more than the test over it
    if test is not None and not own and not any(_is_users(v, account, refusal) for v in test[2]):
        return None  # what the library keeps for itself explains nothing to its user
    who = where(account.place) if own and account.place else f"`{short_name(refusal.api)}`" if refusal.api else ""
    link = account.links[account.root] if 0 <= account.root < len(account.links) else None
    if test is not None and who:
        text, way, operands = test
        values = tuple(v for v in operands if v.text == "None" or _is_telling(v.text))[:_MOST_VALUES]
        link = link if link is not None and _carries(account, link, values) else None
        title = f"{who} raises {'where' if way else 'unless'} `{text}`: {_list_values(values)}"
        probability = _GUARD
    elif not refusal.tests and link is not None and not is_same_line(link, account) and who and refusal.values:
        seen = {v.text for v in (*refusal.arguments, *(each.value for each in account.links))}
        given = (v for v in refusal.values if own or v.text in seen)  # what the library made itself explains nothing
        values = tuple(v for v in given if _is_telling(v.text))[:_MOST_VALUES]
        if not values:
            return None
        title, probability = f"{who} failed with {_list_values(values)}", _CALL
    else:
        return None
    divided = dividing_link(account, values)
    link = link if test is not None else divided or link
    alone = account.rank is not None and len(accounts) == 1 and _world(account) not in {None, 1}
    prefix = f"Rank {account.rank}: " if alone else ""
    title = f"{prefix}{title}{decided_clause(account, link)}"
    place = link.place if link is not None else account.place
    where_to = where(place) if place is not None else "the line that raised"
    fix = f"Look at {where_to}: the call does not take what is made there."
    if test is not None:
        fix = f"Edit {where_to}, so that `{test[0]}` {'does not hold' if test[1] else 'holds'}."
    edit = account_edits.of_test(account, test[0], test[1]) if test is not None else None
    if edit is not None and test is not None:
        place = edit.place
        fix = f"Edit {where(place)}, so that `{test[0]}` {'does not hold' if test[1] else 'holds'}."
    if divided is not None and link is divided:
        fix = f"Edit {where_to}: the division gives 0, so divide a larger number, or by a smaller one."
    if link is not None and link.how == "caught":
        fix = f"Edit {where_to}: {show_what_was_caught(link)}"
    typed = account_edits.typed_option(link)
    if typed is not None:
        fix = f"Edit {where_to}: {account_edits.UNTYPED}"
    why = _guard_ranks(account, values, accounts)
    number = account_edits.written_as_number(link)
    if number and link is not None and _OF_TEXT.search(account.exception):
        said = f"{prefix}`{link.value.name}` is {link.value.text}, a string, not a number"
        fix = f"Edit {where_to}: write {number}."
        title = f"{said}{decided_clause(account, link)}"
        return _explanation(context, account, title, fix, _SURE, TEXT_FOR_NUMBER, why, None, place)
    evidence = "refused-by-a-test" if test else "call-failed"
    return _explanation(context, account, title, fix, probability, evidence, why, typed or edit, place)


def _carries(account: Account, link: Link, values: Sequence[NamedValue]) -> bool:
    """True if the way back on which a link lies has one of the values."""
    at = account.links.index(link)
    begin = next((n for n in range(at, -1, -1) if account.links[n].depth == 0), 0)
    return bool({v.text for v in values} & {each.value.text for each in account.links[begin : at + 1]})


def _is_telling(text: str) -> bool:
    """True for a value with contents: a shape, a number, a string."""
    value = read_value(text)
    return (
        value is not None and value.kind in {"tensor", "sequence", "mapping", "number", "text"} and value.name != "bool"
    )


def _list_values(values: Sequence[NamedValue]) -> str:
    return ", ".join(f"`{v.name}` is {v.text}" for v in values)


def _is_users(operand: NamedValue, account: Account, refusal: Refusal) -> bool:
    """True if an operand of a library's test is an argument of the call, or has a value that the program gave."""
    given = (*refusal.arguments, *(link.value for link in account.links))
    names = {value.name for value in refusal.arguments} | {"self"}
    short = operand.text.isdigit() and len(operand.text) == 1
    return bool(names_in_words(operand.name) & names) or (not short and operand.text in {v.text for v in given})


def _guard_ranks(account: Account, values: Sequence[NamedValue], accounts: Sequence[Account]) -> str:
    """Return what the same values are on the other ranks that failed at the same line."""
    same = [
        a
        for a in accounts
        if a.refusal is not None and a.place is not None and account.place is not None and a.rank is not None
        and (a.place.file, a.place.line) == (account.place.file, account.place.line)
    ]  # fmt: skip
    if len(same) < 2:
        return "The test stands over the line that raised, and its operands had these values."
    for value in values:
        texts = {
            a.rank: next((v.text for v in a.refusal.values if v.name == value.name), "") for a in same if a.refusal
        }
        if len(set(texts.values())) > 1 and all(texts.values()):
            rows = ", ".join(f"{text} on rank {rank}" for rank, text in list(texts.items())[:_MOST_VALUES])
            return f"`{value.name}` differs from rank to rank: {rows}."
    return f"Ranks {ranges(ranks_of(same))} failed with the same values: the program is wrong, not a rank's data."
