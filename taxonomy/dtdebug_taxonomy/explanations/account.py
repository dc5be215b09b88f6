"""Explains by the accounts of failed ranks: a contract that is broken, a test of a library with its operands.

Nothing is said that the values do not show: where one is missing, there is no explanation.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from msgspec.structs import replace

from dtdebug_taxonomy.explanations import account_edits, off_stack
from dtdebug_taxonomy.explanations.account_words import decide, diff_of, ranks_of, where
from dtdebug_taxonomy.explanations.context import Context
from dtdebug_taxonomy.explanations.contract_repairs import taken_for_ranks
from dtdebug_taxonomy.explanations.counting import counting_link
from dtdebug_taxonomy.explanations.faults import TEXT_FOR_NUMBER
from dtdebug_taxonomy.explanations.lost_fraction import dividing_link
from dtdebug_taxonomy.explanations.model import Explanation, Reason, explanation_for, with_diff
from dtdebug_taxonomy.inference.account_call import chains_of, names_in_words, parse_line
from dtdebug_taxonomy.inference.contracts import Broken, Parted, broken_contract, parted_contract
from dtdebug_taxonomy.inference.guards import decisive_test
from dtdebug_taxonomy.logs.exception_roles import role_of
from dtdebug_taxonomy.model.account import Account, Link, NamedValue, Place, Refusal
from dtdebug_taxonomy.model.rank_ranges import ranges
from dtdebug_taxonomy.stacks.frames import is_library
from dtdebug_taxonomy.text.contract_call import UnknownSlotError, fill, short_name, show
from dtdebug_taxonomy.text.demands import UnknownTermError, names_in, sides, value_of
from dtdebug_taxonomy.text.pattern_matcher import plain
from dtdebug_taxonomy.text.value_texts import read_value

_SURE, _GUARD, _CALL = 0.9, 0.7, 0.5
"""Probabilities of a broken contract, of the test that raised, and of the arguments of a call that failed."""
_MOST_VALUES = 4
_SET_UP = "group-is-set-up"
_SIZES_APART = re.compile(r"must match|must be the same size|don't match|do not match")
_NUMBERS = re.compile(r"\d{1,20}")
_RESHAPES = re.compile(r"\.(?:view|reshape|flatten|permute|transpose|unflatten)\(")
_OF_SELF = re.compile(r"\bself\.\w+")
_SMALL = 2
"""Largest number that stands too often in a program to be found again by its value."""
_OF_TEXT = re.compile(r"'str'|\bstr\b")
"""Messages that refuse a string."""
_ENDED = frozenset({"literal", "option", "default", "environment", "file"})


def explain_contract(context: Context) -> Iterator[Explanation]:
    """Yield the contract that the values of a rank break, or that the ranks break together."""
    accounts = by_culprit(context)
    broken = [found for account in accounts if (found := broken_contract(account)) is not None]
    for found in broken:
        alike = [b for b in broken if b.contract is found.contract]
        try:
            yield _of_contract(context, found, alike, accounts, _at_once(found, broken))
        except UnknownSlotError:
            continue
        return
    parted = parted_contract(accounts)
    if parted is not None:
        yield _of_ranks(context, parted)


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


def deciding_link(account: Account, words: str) -> Link | None:
    """Return the link at which the value of an expression was decided; None if the way back does not reach it."""
    chains = chains_of(account, words)
    root = account.links[account.root] if 0 <= account.root < len(account.links) else None
    chain = next((c for c in chains if root in c), chains[0] if chains else ())
    if not chain:
        return None
    text = chain[0].value.text
    if root not in chain or (root is not None and root.how == "called" and root.value.text != text):
        root = next((link for link in reversed(chain) if link.value.text == text and text), chain[0])
    at = chain.index(root) if root is not None else 0
    while at and is_given(chain[at]):
        at -= 1
    at = _where_combined(chain, at)
    exact = chain[0].value.name == words or chain[at].how in _ENDED  # a name in an expression may mean little for it
    return chain[at] if exact else None


def _where_combined(chain: Sequence[Link], at: int) -> int:
    """Return the index of the line that combines several values from outside, where one of them was found to decide."""
    outside = {"option", "default", "environment", "file"}
    if chain[at].how not in outside:
        return at
    parent = next((n for n in range(at - 1, -1, -1) if chain[n].depth < chain[at].depth), None)
    if parent is None:
        return at
    end = next((n for n in range(parent + 1, len(chain)) if chain[n].depth <= chain[parent].depth), len(chain))
    alike = [n for n in range(parent + 1, end) if chain[n].depth == chain[at].depth and chain[n].how in outside]
    return parent if len({chain[n].value.name for n in alike}) > 1 else at


def deciding_line(account: Account) -> Link | None:
    """Return the link to show beside the line that raised; None if that line itself is wrong, or it is not known."""
    found = broken_contract(account)
    if found is not None:
        links = () if found.contract.here else _links_of(found)
    else:
        links = (account.links[account.root],) if 0 <= account.root < len(account.links) else ()
        if _SIZES_APART.search(account.exception):
            refused = account.refusal.values[:2] if account.refusal is not None else ()
            links = _parted_sides(account, [each.name for each in refused]) or links
    return next((link for link in links if not _same_line(link, account)), None)


def making_link(account: Account, words: str) -> Link | None:
    """Return the link at which an object was made."""
    chains = chains_of(account, words)
    return chains[0][0] if chains else None


def is_given(link: Link) -> bool:
    """True for a line that only asks for the rank or the world size: what is made of them was decided after it.

    Of an argument that is passed on, the argument alone counts.
    """
    begin, end = link.place.mark if link.how in {"passed", "called"} else (0, 0)
    tree = parse_line(link.place.code[begin:end] if begin < end else link.place.code)
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call)] if tree is not None else []
    return (
        bool(calls)
        and all(ast.unparse(n.func).rpartition(".")[2] in {"get_rank", "get_world_size"} for n in calls)
        and not any(isinstance(n, ast.BinOp) for n in ast.walk(tree or ast.Module([], [])))
    )


def decided_clause(account: Account, *links: Link | None) -> str:
    """Return "; `--shards` defaults to 4 (train.py:11)", or the place that raised where that line itself decides."""
    decided = [decide(link) for link in links if link is not None and not _same_line(link, account)]
    if not decided:
        return f" ({where(account.place)})" if account.place is not None else ""
    return f"; {', '.join(decided)}"


def _same_line(link: Link, account: Account) -> bool:
    place = account.place
    return place is not None and (link.place.file, link.place.line) == (place.file, place.line)


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
    links = () if contract.here else _links_of(found)
    link = links[0] if links else None
    try:
        said = fill(contract.says, call)
    except UnknownSlotError:
        if not contract.asks:
            raise
        said = fill(contract.asks, call)
    title = f"{_rank_prefix(account, alike, accounts)}{said}{decided_clause(account, *links)}"
    typed = account_edits.typed_option(link)
    edit = typed or account_edits.of_contract(found, link, at_once)
    place = edit.place if edit is not None else link.place if link is not None else account.place
    fix = account_edits.UNTYPED if typed is not None else fill(contract.fix, call, strict=False)
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
        fix = f"Edit {where(place)}: {_lower(fix)}"
    told = _explanation(context, account, title, fix, _SURE, contract.id, _why(alike, accounts), edit, place)
    return replace(told, settled=edit.meant if edit is not None else _is_settled(found, link))


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
    return link.how in _ENDED and link.value.text in _compared_values(found)


def _links_of(found: Broken) -> tuple[Link, ...]:
    """Return where what the demand compares was decided: what the contract is about first, at most two lines."""
    contract, account, call = found
    if (frozen := _freezing_line(account)) is not None:
        return (frozen,)
    links: list[Link] = [link for link in account.links if link.how == "tested" and contract.about == "self"][:2]
    for name in (contract.about, *sorted(names_in(contract.demand) - {contract.about})) if not links else ():
        if name in call.expressions and name != "self":
            link = _argument_link(found, name)
        elif name in {contract.about, "self"} and "self" in call.expressions:
            link = _attribute_link(account, contract.demand) or making_link(account, call.expressions["self"][0])
        else:
            continue
        lines = [account.place, *(known.place for known in links)]
        if link is not None and not any(p is not None and where(p) == where(link.place) for p in lines):
            links.append(link)
    held = _in_file(found)
    asked = [words for name, (words, _) in call.expressions.items() if name in names_in(contract.demand)]
    if alone := (held,) if held is not None else _parted_sides(account, asked):
        return alone
    compared = _compared_values(found)
    decided = any(link.how in _ENDED and link.value.text in compared for link in links)
    if not decided and (taken := taken_for_ranks(found)) is not None:
        return (taken,)
    if not any(link.value.text in compared for link in links) and (side := _other_side(found)) is not None:
        return (side,)
    made = [link for link in links if not is_given(link)]
    links = sorted(made or links, key=_hands_on)
    inner = contract.about and contract.about not in call.expressions
    if not links and inner and 0 <= account.root < len(account.links):
        links.append(account.links[account.root])
    if not links and contract.about in call.expressions and (part := _computed_part(found)) is not None:
        links.append(part)
    return tuple(links[:2])


def _argument_link(found: Broken, name: str) -> Link | None:
    """Return where an argument that the demand compares was decided."""
    contract, account, call = found
    words = call.expressions[name][0]
    counted = _counting_link(account, words) if f"len({name})" in contract.demand else None
    link = counted or deciding_link(account, words)
    if counted is None and link is not None and (_is_part(link, name, found) or _is_reshaped(account, words)):
        link = making_link(account, words)
    return link if link is not None and not _is_behind_part(link, name, found) else None


def _attribute_link(account: Account, demand: str) -> Link | None:
    """Return where an attribute of the called object that a demand compares was decided."""
    found = (deciding_link(account, name) for name in _OF_SELF.findall(demand))
    return next((link for link in found if link is not None), None)


def _counting_link(account: Account, words: str) -> Link | None:
    """Return the line at which the number of elements of an argument was decided."""
    chains = [chain for chain in chains_of(account, words) if chain[0].value.name == words]
    return counting_link(chains[0]) if chains else None


def _freezing_line(account: Account) -> Link | None:
    """Return what decided which parameters are trained: the setting that the line which says it reads, or that line."""
    rows = [n for n, link in enumerate(account.links) if link.value.name == "requires_grad" and link.depth == 0]
    if not rows:
        return None
    below = itertools.takewhile(lambda link: link.depth > 0, account.links[rows[-1] + 1 :])
    ends = [link for link in below if link.how in _ENDED and link.value.text]
    return ends[0] if len(rows) == 1 and ends else account.links[rows[-1]]


def _other_side(found: Broken) -> Link | None:
    """Return the only literal, option or default on the ways back that is one of the two numbers compared.

    Of labels that come from data, the number of outputs that the model was made with.
    """
    compared = {text for text in _compared_values(found) if text.isdigit() and int(text) > _SMALL}
    ends = [
        link
        for name, (words, _) in found.call.expressions.items()
        if name != "self"
        for chain in chains_of(found.account, words)
        for at, link in enumerate(chain)
        if link.how in {"literal", "option", "default"} and link.value.text in compared and _is_carried(chain, at)
    ]
    return ends[0] if len({where(link.place) for link in ends}) == 1 else None


def _is_carried(chain: Sequence[Link], at: int) -> bool:
    """True if each value between an end of a way back and its beginning can hold the number: else it is by chance."""
    number, depth = chain[at].value.text, chain[at].depth
    for link in reversed(chain[:at]):
        if link.depth < depth:
            depth = link.depth
            shown = _NUMBERS.findall(link.value.text)
            if shown and number not in shown:
                return False
    return True


def _parted_sides(account: Account, words: Iterable[str]) -> tuple[Link, ...]:
    """Return the two lines that made two refused values of one, each in its way.

    The two do not fit, so it is one of these lines that is wrong: what they share can't be.
    """
    chains = [chain for each in words for chain in chains_of(account, each)[:1]]
    for one in chains:
        last = one[-1]
        used = names_in_words(last.place.code)
        for other in chains if len(chains) == 2 else ():
            for n, link in enumerate(other):
                up = next((u for u in reversed(other[:n]) if u.depth < link.depth), None)
                if other is one or up is None or link.value.name not in used or link.how in _ENDED:
                    continue
                if not all(map(_computes, (up, last))):
                    continue
                if (up.place.file, up.place.function) == (last.place.file, last.place.function):
                    return (last, up) if up.place != last.place else ()
    return ()


def _computes(link: Link) -> bool:
    """True if a line makes another value of what it takes."""
    if link.how in {"passed", "loop"}:
        return False
    match parse_line(link.place.code):
        case ast.Module(body=[ast.Assign(value=ast.Subscript() | ast.BinOp() | ast.Call())]):
            return True
    return False


def _computed_part(found: Broken) -> Link | None:
    """Return the line that computes a part of `(replicas, tp)`, if it is the only part that is computed."""
    chains = chains_of(found.account, found.call.expressions[found.contract.about][0])
    heads = [chain[0] for chain in chains if chain[0].how == "assigned"]
    trees = [(link, parse_line(link.place.code)) for link in heads]
    computed = [link for link, tree in trees if tree is not None and any(map(_is_sum, ast.walk(tree)))]
    return computed[0] if len(computed) == 1 else None


def _is_sum(node: ast.AST) -> bool:
    return isinstance(node, ast.BinOp)


def _in_file(found: Broken) -> Link | None:
    """Return the line of a configuration file that holds one of the two numbers which the demand compares."""
    compared = _compared_values(found)
    held = [
        link
        for link in found.account.links
        if link.how == "file" and not link.place.file.endswith(".py") and link.value.text in compared
    ]
    return held[0] if len(held) == 1 else None


def _hands_on(link: Link) -> bool:
    """True for a line that only names a value which came from elsewhere: `x, y = batch`."""
    match parse_line(link.place.code):
        case ast.Module(body=[ast.Assign(value=ast.Name() | ast.Attribute())]):
            return link.how == "assigned"
    return False


def _is_part(link: Link, name: str, found: Broken) -> bool:
    """True if a tensor is compared, and the link decides only one of the numbers that it was made of."""
    value = read_value(found.call.texts.get(name, ""))
    of_tensor = value is not None and value.kind == "tensor"
    wanted = _wanted_of(found) if name == found.contract.about else ""  # by chance, it is what the tensor has not
    return of_tensor and link.how in _ENDED and link.value.text not in _compared_values(found) - {wanted}


def _is_behind_part(link: Link, name: str, found: Broken) -> bool:
    """True if a list of numbers is compared, and the link decides another number, which one of them was made of."""
    value = read_value(found.call.texts.get(name, "")) or found.call.scope.values.get(name)
    if value is None or value.kind != "sequence" or link.how not in _ENDED or not link.value.text.isdigit():
        return False
    held = {str(item.plain) for item in value.items}
    return value.whole and "None" not in held and link.value.text not in held | _compared_values(found)


def _is_reshaped(account: Account, words: str) -> bool:
    """True if the line that gave a tensor its name also gave it its shape, whatever it was made of."""
    made = making_link(account, words)
    return made is not None and made.value.name == words and bool(_RESHAPES.search(made.place.code))


def _wanted_of(found: Broken) -> str:
    """Return the text of what the demand compares the argument with; empty if it is not known."""
    right = sides(found.contract.demand)[2]
    try:
        return show(value_of(right, found.call.scope)) if right else ""
    except UnknownTermError:
        return ""


def _compared_values(found: Broken) -> set[str]:
    """Return the texts of the two values that the demand compares, as far as they are known."""
    compared = set()
    for side in sides(found.contract.demand)[::2]:
        with suppress(UnknownTermError):
            compared.add(show(value_of(side, found.call.scope)) if side else "")
    return compared


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
    who = where(account.place) if own and account.place else f"`{short_name(refusal.api)}`" if refusal.api else ""
    link = account.links[account.root] if 0 <= account.root < len(account.links) else None
    if test is not None and who:
        text, way, operands = test
        values = tuple(v for v in operands if v.text == "None" or _is_telling(v.text))[:_MOST_VALUES]
        link = link if link is not None and _carries(account, link, values) else None
        title = f"{who} raises {'where' if way else 'unless'} `{text}`: {_list_values(values)}"
        probability = _GUARD
    elif not refusal.tests and link is not None and not _same_line(link, account) and who and refusal.values:
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
    if test is not None and not test[1]:
        fix = f"Edit {where_to}, so that `{test[0]}` holds."
    elif test is not None:
        fix = f"Edit {where_to}, so that `{test[0]}` does not hold."
    edit = account_edits.of_test(account, test[0], test[1]) if test is not None else None
    if edit is not None:
        place = edit.place
        fix = f"Edit {where(place)}, so that `{test[0]}` {'does not hold' if test[1] else 'holds'}." if test else fix
    if divided is not None and link is divided:
        fix = f"Edit {where_to}: the division gives 0, so divide a larger number, or by a smaller one."
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
