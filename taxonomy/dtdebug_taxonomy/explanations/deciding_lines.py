"""Lines of a program at which the refused value was decided: what its way back and the demand on it show."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress

from dtdebug_taxonomy.explanations.account_words import decide, where
from dtdebug_taxonomy.explanations.contract_repairs import taken_for_ranks
from dtdebug_taxonomy.explanations.counting import counted_by, counting_link
from dtdebug_taxonomy.explanations.lost_fraction import rounding_link
from dtdebug_taxonomy.inference.account_call import chains_of, names_in_words, parse_line
from dtdebug_taxonomy.inference.contracts import Broken, broken_contract
from dtdebug_taxonomy.model.account import Account, Link
from dtdebug_taxonomy.text.contract_call import show
from dtdebug_taxonomy.text.demands import UnknownTermError, names_in, sides, value_of
from dtdebug_taxonomy.text.value_texts import read_value

ENDED = frozenset({"literal", "option", "default", "environment", "file"})
"""Kinds of links at which a value is decided for good."""
_SIZES_APART = re.compile(r"must match|must be the same size|don't match|do not match")
_NUMBERS = re.compile(r"\d{1,20}")
_RESHAPES = re.compile(r"\.(?:view|reshape|flatten|permute|transpose|unflatten)\(")
_OF_SELF = re.compile(r"\bself\.\w+")
_SMALL = 2
"""Largest number that stands too often in a program to be found again by its value."""


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
    at = _where_counted(chain, _where_combined(chain, at))
    exact = chain[0].value.name == words or chain[at].how in ENDED  # a name in an expression may mean little for it
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


def _where_counted(chain: Sequence[Link], at: int) -> int:
    """Return the index of the line that counts an object of which the deciding value is only a part: `len(loader)`."""
    for n in range(1, at + 1):
        up = next((u for u in range(n - 1, -1, -1) if chain[u].depth < chain[n].depth), None)
        if (
            up is not None
            and f"len({chain[n].value.name})" in chain[up].place.code
            and chain[n].value.text[:1].isalpha()
        ):
            return up
    return at


def deciding_line(account: Account) -> Link | None:
    """Return the link to show beside the line that raised; None if that line itself is wrong, or it is not known."""
    found = broken_contract(account)
    if found is not None:
        links = () if found.contract.here else links_of(found)
    else:
        links = (account.links[account.root],) if 0 <= account.root < len(account.links) else ()
        if _SIZES_APART.search(account.exception):
            refused = account.refusal.values[:2] if account.refusal is not None else ()
            links = _parted_sides(account, [each.name for each in refused]) or links
    return next((link for link in links if not is_same_line(link, account)), None)


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
    decided = [decide(link) for link in links if link is not None and not is_same_line(link, account)]
    if not decided:
        return f" ({where(account.place)})" if account.place is not None else ""
    return f"; {', '.join(decided)}"


def is_same_line(link: Link, account: Account) -> bool:
    """True if a link stands on the line that raised."""
    place = account.place
    return place is not None and (link.place.file, link.place.line) == (place.file, place.line)


def links_of(found: Broken) -> tuple[Link, ...]:
    """Return where what the demand compares was decided: what the contract is about first, at most two lines."""
    links = _links_of(found)
    own = _of_shared(found, links) or _rounded_link(found, links)
    return (own,) if own is not None else links


def _rounded_link(found: Broken, links: Sequence[Link]) -> Link | None:
    """Return the only line at which a whole division cut something off a number that the demand compares.

    Where a number is not known there, only if no setting is one of the two that are compared.
    """
    compared = compared_values(found)
    decided = any(link.how in ENDED and link.value.text in compared for link in links)
    names = names_in(found.contract.demand)
    asked = [words for name, (words, _) in found.call.expressions.items() if name in names and name != "self"]
    asked += _OF_SELF.findall(found.contract.demand)
    chained = [link for words in asked for chain in chains_of(found.account, words) for link in chain]
    return rounding_link(found.account, chained, unknown=not decided)


def _links_of(found: Broken) -> tuple[Link, ...]:
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
    compared = compared_values(found)
    decided = any(link.how in ENDED and link.value.text in compared for link in links)
    if not decided and (taken := taken_for_ranks(found)) is not None:
        return (taken,)
    if not any(link.value.text in compared for link in links) and (side := _other_side(found)) is not None:
        return (side,)
    if (model := _model_link(found)) is not None:
        links = [model, *links[:1]]
    made = [link for link in links if not is_given(link)]
    links = sorted(made or links, key=_hands_on)
    inner = contract.about and contract.about not in call.expressions
    if not links and inner and 0 <= account.root < len(account.links):
        links.append(account.links[account.root])
    if not decided and contract.about in call.expressions and (part := _computed_part(found)) is not None:
        links = [part]
    return tuple(links[:2])


def _of_shared(found: Broken, links: Sequence[Link]) -> Link | None:
    """Return the line that made the called object, if it uses the setting that the argument was decided by as well.

    Another number there would change both sides of the demand.
    """
    contract, account, call = found
    if "self" not in names_in(contract.demand) or "self" not in call.expressions:
        return None
    made = making_link(account, call.expressions["self"][0])
    used = names_in_words(made.place.code) if made is not None else ()
    return made if any(link.how in ENDED and link.value.name in used for link in links) else None


def _argument_link(found: Broken, name: str) -> Link | None:
    """Return where an argument that the demand compares was decided."""
    contract, account, call = found
    words = call.expressions[name][0]
    if f"{name}.dtype" in contract.demand and (typed := _typed_link(account, words)) is not None:
        return typed
    counted = _counting_link(account, words) if f"len({name})" in contract.demand else None
    link = counted or deciding_link(account, words)
    if counted is None and link is not None and (_is_part(link, name, found) or _is_reshaped(account, words)):
        link = making_link(account, words)
    return link if link is not None and not _is_behind_part(link, name, found) else None


def _typed_link(account: Account, words: str) -> Link | None:
    """Return the last line of a way back on which a value has the dtype of the refused one: it came in there."""
    chain = next((chain for chain in chains_of(account, words) if chain[0].value.name == words), ())
    wanted = read_value(chain[0].value.text) if chain else None
    found, depth = -1, -1
    for n, link in enumerate(chain if wanted is not None and wanted.dtype else ()):
        if link.depth <= depth:
            break
        depth, value = link.depth, read_value(link.value.text)
        returned = found == n - 1 and link.how == "returned" and value is None
        if returned or (value is not None and wanted is not None and value.dtype == wanted.dtype):
            found = n
    return chain[found] if found > 0 else None


def _model_link(found: Broken) -> Link | None:
    """Return the line that made the model whose output bounds what data holds: `target.max < input.shape[1]`."""
    contract, account, call = found
    bounds = names_in(contract.demand) & call.expressions.keys() - {contract.about, "self"}
    for words in (call.expressions[name][0] for name in sorted(bounds) if sides(contract.demand)[1] == "Lt"):
        chain = next(iter(chains_of(account, words)), ())
        tree = parse_line(chain[0].place.code) if chain else None
        called = {ast.unparse(n.func) for n in ast.walk(tree) if isinstance(n, ast.Call)} if tree is not None else ()
        at = next((n for n, link in enumerate(chain) if link.value.name in called), 0)
        while at and at + 1 < len(chain) and chain[at + 1].depth > chain[at].depth and chain[at + 1].how == "called":
            at += 1  # the model that a wrapper was given
        value = read_value(chain[at - 1].value.text or chain[at].value.text) if at else None
        if value is not None and value.kind == "module":
            return chain[at]
    return None


def _attribute_link(account: Account, demand: str) -> Link | None:
    """Return where an attribute of the called object that a demand compares was decided."""
    found = (deciding_link(account, name) for name in _OF_SELF.findall(demand))
    return next((link for link in found if link is not None), None)


def _counting_link(account: Account, words: str) -> Link | None:
    """Return the line at which the number of elements of an argument was decided."""
    chains = [chain for chain in chains_of(account, words) if chain[0].value.name == words]
    found = counting_link(chains[0]) if chains else None
    held = read_value(chains[0][0].value.text) if found is None and chains else None
    if held is None or held.length is None:
        return found
    # what is told on the way back of another argument is not told twice
    number = [each for chain in chains_of(account, counted_by(chains[0][0]))[:1] for each in chain]
    return next((each for each in reversed(number) if each.value.text == str(held.length)), None)


def _freezing_line(account: Account) -> Link | None:
    """Return what decided which parameters are trained: the setting that the line which says it reads, or that line."""
    rows = [n for n, link in enumerate(account.links) if link.value.name == "requires_grad" and link.depth == 0]
    if not rows:
        return None
    below = itertools.takewhile(lambda link: link.depth > 0, account.links[rows[-1] + 1 :])
    ends = [link for link in below if link.how in ENDED and link.value.text]
    return ends[0] if len(rows) == 1 and ends else account.links[rows[-1]]


def _other_side(found: Broken) -> Link | None:
    """Return the only literal, option or default on the ways back that is one of the two numbers compared.

    Of labels that come from data, the number of outputs that the model was made with.
    """
    compared = {text for text in compared_values(found) if text.isdigit() and int(text) > _SMALL}
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
                if other is one or up is None or link.value.name not in used or link.how in ENDED:
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
    words = found.call.expressions[found.contract.about][0]
    match parse_line(words):
        case ast.Module(body=[ast.Expr(value=ast.Tuple() | ast.List())]):
            chains = chains_of(found.account, words)
            computed = [
                next((link for link in chain if link.how == "assigned" and _adds(link)), None) for chain in chains
            ]
            made = [link for link in computed if link is not None]
            return made[0] if len(made) == 1 else None
    return None


def _adds(link: Link) -> bool:
    """True if a line does arithmetic."""
    tree = parse_line(link.place.code)
    return tree is not None and any(isinstance(node, ast.BinOp) for node in ast.walk(tree))


def _in_file(found: Broken) -> Link | None:
    """Return the line of a configuration file that holds one of the two numbers which the demand compares."""
    compared = compared_values(found)
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
    return of_tensor and link.how in ENDED and link.value.text not in compared_values(found) - {wanted}


def _is_behind_part(link: Link, name: str, found: Broken) -> bool:
    """True if a list of numbers is compared, and the link decides another number, which one of them was made of."""
    value = read_value(found.call.texts.get(name, "")) or found.call.scope.values.get(name)
    if value is None or value.kind != "sequence" or link.how not in ENDED or not link.value.text.isdigit():
        return False
    held = {str(item.plain) for item in value.items}
    return value.whole and "None" not in held and link.value.text not in held | compared_values(found)


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


def compared_values(found: Broken) -> set[str]:
    """Return the texts of the two values that the demand compares, as far as they are known."""
    compared = set()
    for side in sides(found.contract.demand)[::2]:
        with suppress(UnknownTermError):
            compared.add(show(value_of(side, found.call.scope)) if side else "")
    return compared
