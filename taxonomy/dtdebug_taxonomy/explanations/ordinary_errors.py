"""Python's own errors in a job, with the account of them: which value it was, where it came from, and near names."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Final

from msgspec.structs import replace

from dtdebug_taxonomy.explanations import account_edits, off_stack
from dtdebug_taxonomy.explanations.account import by_culprit, reason_from
from dtdebug_taxonomy.explanations.account_values import (
    chain_of,
    last_with_value,
    nodes_of_line,
    plain_value,
    root_in,
    values_at_failure,
)
from dtdebug_taxonomy.explanations.account_words import Edit, diff_of, ranks_of, replace_expression, to_change, where
from dtdebug_taxonomy.explanations.checkpoint_keys import of_checkpoint_keys
from dtdebug_taxonomy.explanations.checkpoint_shapes import of_shapes
from dtdebug_taxonomy.explanations.context import Context
from dtdebug_taxonomy.explanations.counting import counting_link
from dtdebug_taxonomy.explanations.deciding_lines import decided_clause, is_given
from dtdebug_taxonomy.explanations.faults import Fault
from dtdebug_taxonomy.explanations.launch_variables import of_unset_variable
from dtdebug_taxonomy.explanations.misplaced_arguments import of_arguments
from dtdebug_taxonomy.explanations.missing_attribute import of_attribute, of_none, show_what_was_caught
from dtdebug_taxonomy.explanations.missing_file import of_file
from dtdebug_taxonomy.explanations.model import Explanation, explanation_for, with_diff
from dtdebug_taxonomy.explanations.older_object import of_older_object
from dtdebug_taxonomy.explanations.refused_words import of_states, of_word
from dtdebug_taxonomy.explanations.short_batch import of_short_batch
from dtdebug_taxonomy.explanations.text_for_number import of_text_for_number
from dtdebug_taxonomy.explanations.unequal_samples import of_samples
from dtdebug_taxonomy.inference.account_call import parse_line
from dtdebug_taxonomy.model.account import Account, Link, Place
from dtdebug_taxonomy.model.launch_variables import name_elsewhere
from dtdebug_taxonomy.model.rank_ranges import ranges
from dtdebug_taxonomy.model.snapshot import walk
from dtdebug_taxonomy.text.near_names import akin_name, near_name
from dtdebug_taxonomy.text.pattern_matcher import plain
from dtdebug_taxonomy.text.value_texts import Value, read_value

EVIDENCE, TWO_SIDES = "value-of-an-error", "one-of-two-sides"
"""The second where two places do not fit together and nothing shows which of them is wrong."""
_PROBABILITY = 0.8
_KEY = re.compile(r"KeyError: (?P<key>'[^']{1,80}'|\"[^\"]{1,80}\"|-?\d{1,12})\Z")
_INTO_NUMBER = re.compile(
    r"ValueError: (?:invalid literal for int\(\) with base 10|could not convert string to float): "
    r"(?P<value>'[^']{0,80}')\Z"
)
_NAMES = re.compile(r"[A-Za-z0-9]{1,80}")
_MOST_KEYS = 6


def explain(context: Context) -> Iterator[Explanation]:
    """Yield the value that a Python error speaks of, of the first rank whose account shows it."""
    accounts, snapshot = by_culprit(context), context.incident.snapshot
    printed = "\n".join((snapshot.output, *(info.message for info in walk(snapshot.exception))))  # whole messages
    for account in accounts:
        reader = _READERS.get(account.exception.partition(":")[0].rpartition(".")[2])
        found = None
        if account.place is not None:
            found = _of_variable(account, snapshot.environment) or _of_crossed(account)
            found = found or (reader(account) if reader is not None else None)
            found = found or of_arguments(account) or of_text_for_number(account) or of_word(account, printed)
            found = found or of_states(account, printed) or of_shapes(account, printed) or of_older_object(account)
            found = found or of_samples(account, printed) or of_short_batch(account)
        if found is not None:
            found = of_unset_variable(found, snapshot.environment) or found
            if found.link is not None and found.link.how == "caught":
                found = found._replace(fix=show_what_was_caught(found.link), edit=None, likely=True)
            yield _explanation(context, account, found, accounts)
            return


def _explanation(context: Context, account: Account, found: Fault, accounts: Sequence[Account]) -> Explanation:
    same = [a for a in accounts if a.exception == account.exception and a.place == account.place]
    ranks, everyone = ranks_of(same), ranks_of(accounts)
    prefix = f"Rank{'s' if len(ranks) > 1 else ''} {ranges(ranks)}: " if ranks and ranks != everyone else ""
    title = f"{prefix}{found.said}{decided_clause(account, found.link, found.other)}"
    place = found.at or (found.edit.place if found.edit is not None else None)
    place = place or (found.link.place if found.link is not None else account.place)
    fix = f"{to_change(place, found.link)}: {found.fix}" if place is not None else found.fix
    why = "The line that raised uses this value."
    if len(ranks) > 1 and ranks == everyone:
        why = f"Ranks {ranges(ranks)} failed alike: the program is wrong, not a rank's data."
    evidence = found.evidence or (TWO_SIDES if found.other is not None or found.likely else EVIDENCE)
    reason = reason_from(account, evidence)
    whole = explanation_for(context.symptom, plain(title, 500), why, plain(fix, 500), _PROBABILITY, reason)
    diff = diff_of(found.edit, context.incident.snapshot.excerpts) if found.edit is not None else ""
    whole = with_diff(whole, diff)
    return whole if place is None else replace(whole, file=place.file, line=place.line)


def _of_variable(account: Account, environment: Mapping[str, str]) -> Fault | None:
    """Return the variable that is not set, if the launcher set one of a near name."""
    matched = _KEY.match(account.exception)
    name = ast.literal_eval(matched["key"]) if matched is not None else None
    if not isinstance(name, str) or account.place is None or not account.place.code.isascii():
        return None
    asked = [
        n.slice  # type: ignore[attr-defined]
        for n in nodes_of_line(account, ast.Subscript)
        if ast.unparse(n.value).rpartition(".")[2] == "environ"  # type: ignore[attr-defined]
    ]
    spans = [(n.col_offset, n.end_col_offset or 0) for n in asked if isinstance(n, ast.Constant) and n.value == name]
    other = name_elsewhere(name, environment)
    near = other or near_name(name, environment)
    if len(spans) != 1 or not near:
        return None
    quote = account.place.code[spans[0][0]]
    edit = replace_expression(account.place, spans[0], f"{quote}{near}{quote}")
    said = f"The environment has no variable {name}: it has {near} = {plain(environment[near], 60)}"
    if other:
        said = f"{said}, for another launcher started this job"
    fix = f"ask for {near}, and for the others of this launcher." if other else f"ask for {near}."
    return Fault(said, fix, None, edit, account.place)


def _of_crossed(account: Account) -> Fault | None:
    """Return two arguments of one call, each passed to the parameter that has the name of the other."""
    rows = []
    for at, link in enumerate(account.links[:-1]):
        below = account.links[at + 1]
        if link.how == "passed" and below.depth == link.depth + 1:
            rows.append((link.value.name, below.value.name, link))
    for name, source, link in rows:
        other = next((r for r in rows if r[:2] == (source, name) and _is_same_line(r[2].place, link.place)), None)
        if other is None or name == source:
            continue
        edit = _in_turn(link.place, source, name)
        said = (
            f"`{name}` is {link.value.text} and `{source}` is {other[2].value.text}: the call passes each as the other"
        )
        return Fault(said, f"pass `{name}` as `{name}` and `{source}` as `{source}`.", link, edit, likely=True)
    return None


def _is_same_line(one: Place, other: Place) -> bool:
    return (one.file, one.line) == (other.file, other.line)


def _in_turn(place: Place, first: str, second: str) -> Edit | None:
    """Return the line with two neighbouring arguments in the other order."""
    tree = parse_line(place.code)
    if tree is None or not place.code.isascii():
        return None
    spans = set()
    for node in ast.walk(tree):
        parts = node.args if isinstance(node, ast.Call) else node.elts if isinstance(node, ast.Tuple | ast.List) else []
        names = [ast.unparse(part) for part in parts]
        if sorted(n for n in names if n in {first, second}) == sorted((first, second)):
            one, two = (parts[names.index(n)] for n in sorted((first, second), key=names.index))
            spans.add((one.col_offset, one.end_col_offset or 0, two.col_offset, two.end_col_offset or 0))
    if len(spans) != 1:
        return None
    ((a, b, c, d),) = spans
    code = place.code
    return replace_expression(place, (a, d), f"{code[c:d]}{code[b:c]}{code[a:b]}")


def _computing_link(account: Account, slot: ast.expr) -> Link | None:
    """Return the line that computes a key; None if the key is written down as it is."""
    if isinstance(slot, ast.Constant):
        return None
    chain = chain_of(account, ast.unparse(slot))
    tree = parse_line(chain[0].place.code) if chain and chain[0].how in {"assigned", "called", "returned"} else None
    value = getattr(tree.body[0], "value", None) if isinstance(tree, ast.Module) and tree.body else None
    return chain[0] if value is not None and not isinstance(value, ast.Constant | ast.Name | ast.Attribute) else None


def _of_key(account: Account) -> Fault | None:
    """Return the mapping that has no such key, its keys, and the near one."""
    matched = _KEY.match(account.exception)
    if matched is None:
        return None
    key, texts = ast.literal_eval(matched["key"]), values_at_failure(account)
    rows = []
    for node in nodes_of_line(account, ast.Subscript):
        owner, slot = ast.unparse(node.value), node.slice  # type: ignore[attr-defined]
        value = read_value(texts.get(owner, ""))
        written = slot.value if isinstance(slot, ast.Constant) else plain_value(texts.get(ast.unparse(slot), ""))
        unknown = not isinstance(slot, ast.Constant) and ast.unparse(slot) not in texts and value is not None
        if value is not None and value.kind == "mapping" and (written == key or (unknown and value.whole)):
            rows.append((owner, slot, value))
    if len(rows) != 1 or (not rows[0][2].whole and str(key) in rows[0][2].keys):
        return None
    owner, slot, value = rows[0]
    keys = [k for k in value.keys if k != str(key)]
    unread = {k: each for k in keys for each in account.beside if each.value.name == f"{owner}[{k!r}]"}
    near = near_name(str(key), keys) or akin_name(str(key), unread) if isinstance(key, str) else ""
    shown = ", ".join(repr(k) if isinstance(key, str) else k for k in keys[:_MOST_KEYS])
    more = "" if value.whole and len(keys) <= _MOST_KEYS else ", ..."
    has = f"it has {shown}{more}" if keys else "it is empty" if value.whole else "its keys are not at hand"
    edit = None
    if near and isinstance(slot, ast.Constant) and account.place is not None and account.place.code.isascii():
        quote = account.place.code[slot.col_offset]
        written = f"{quote}{near}{quote}" if quote in "'\"" and quote not in near else repr(near)
        edit = replace_expression(account.place, (slot.col_offset, slot.end_col_offset or 0), written)
    fix = f"ask for {near!r}." if near else f"add {key!r} to it, or ask for a key that it has."
    chain = chain_of(account, owner)
    link = last_with_value(account, owner, texts[owner])
    if any(each.how == "file" for each in chain):
        link = root_in(account, chain) or link
    if near in unread:
        has = f"it has {near!r} instead"
        link = unread[near] if unread[near].how == "file" else link
    if near and not isinstance(slot, ast.Constant):
        said = f"write and ask for keys in one way: {near!r} was written, and {key!r} is asked for."
        return Fault(f"`{owner}` has no key {key!r}: {has}", said, link)
    if not near and isinstance(key, str) and (computed := _computing_link(account, slot)) is not None:
        words = ast.unparse(slot)
        sources = {each.value.text: each for each in chain_of(account, words)[1:] if repr(key)[1:-1] in each.value.text}
        held = [
            (k, each) for each in sources.values() for k in keys if len(k) > 1 and k in _NAMES.findall(each.value.text)
        ]
        if len({k for k, _ in held}) == 1:
            part, source = held[0]
            of = f"`{source.value.name}` is {source.value.text}"
            said = f"`{words}` is {key!r}, and `{owner}` has no such key: {has}; {of}"
            return Fault(
                said, f"let `{words}` be {part!r} there, which is in `{source.value.name}` too.", computed, likely=True
            )
        said = f"compute one of its keys there, or add {key!r} to `{owner}`."
        return Fault(f"`{owner}` has no key {key!r}: {has}", said, computed, other=link)
    return Fault(f"`{owner}` has no key {key!r}: {has}", fix, link, edit, account.place if near else None)


def _of_type(account: Account) -> Fault | None:
    """Return the one expression of the line that is None, if the error speaks of None."""
    if "NoneType" not in account.exception:
        return _of_kind(account)
    texts = values_at_failure(account)
    written = {
        ast.unparse(n)
        for kind in (ast.Name, ast.Attribute, ast.Subscript, ast.Call)
        for n in nodes_of_line(account, kind)
    }
    nothing = [name for name in written if texts.get(name) == "None"]
    return of_none(account, nothing[0]) if len(nothing) == 1 else None


_KIND = re.compile(
    r"TypeError: '(?P<kind>\w{1,80})' object (?:is not (?P<not>iterable|callable|subscriptable|an iterator)"
    r"|does not support (?P<no>[a-z ]{1,40})|cannot be (?P<as>interpreted as an integer))"
)


def _of_kind(account: Account) -> Fault | None:
    """Return the expression whose object can't do what the line asks of it, and the line that made it."""
    matched = _KIND.match(account.exception)
    if matched is None:
        return None
    rows = [
        name
        for name, text in values_at_failure(account).items()
        if (value := read_value(text)) is not None and value.name == matched["kind"]
    ]
    if len(rows) != 1:
        return None
    words = rows[0]
    chain = chain_of(account, words)
    link = chain[0] if chain else None
    what = f"is not {matched['not']}" if matched["not"] else f"does not support {matched['no']}"
    what = f"can't be {matched['as']}" if matched["as"] else what
    edit = _in_order(link) if link is not None else None
    fix = "give it the object that the line expects."
    if edit is not None:
        fix = "the results come in the order of the arguments."
    return Fault(f"`{words}` is of {matched['kind']}, which {what}", fix, link, edit)


def _in_order(link: Link) -> Edit | None:
    """Return the edit that unpacks in the order of the arguments, where the targets are the same names in another."""
    tree = parse_line(link.place.code)
    match tree:
        case ast.Module(body=[ast.Assign(targets=[ast.Tuple() as target], value=ast.Call(keywords=[]) as call)]):
            names, given = ([ast.unparse(e).rpartition(".")[2] for e in each] for each in (target.elts, call.args))
            if names == given or sorted(names) != sorted(given) or not link.place.code.isascii():
                return None
            order = [ast.unparse(target.elts[names.index(name)]) for name in given]
            span = (target.elts[0].col_offset, target.elts[-1].end_col_offset or 0)
            return replace_expression(link.place, span, ", ".join(order))
    return None


_RANK_VARIABLE = re.compile(r"['\"](?:[A-Z]{1,20}_)?(?:RANK|LOCAL_RANK|PROCID|LOCALID)['\"]")
_OUT_OF_RANGE = re.compile(r"index (?:-?\d{1,12} is )?out of (?:range|bounds for dimension 0)")


def _of_index(account: Account) -> Fault | None:
    """Return the index with the length of what it goes into."""
    if not _OUT_OF_RANGE.search(account.exception):
        return None
    texts, rows = values_at_failure(account), []
    for node in nodes_of_line(account, ast.Subscript):
        owner, slot = ast.unparse(node.value), node.slice  # type: ignore[attr-defined]
        index = slot.value if isinstance(slot, ast.Constant) else plain_value(texts.get(ast.unparse(slot), ""))
        length = _length(read_value(texts.get(owner, "")))
        if isinstance(index, int) and length is not None and not -length <= index < length:
            rows.append((owner, slot, index, length))
    if len(rows) != 1:
        return None
    owner, slot, index, length = rows[0]
    slot_words = ast.unparse(slot)
    asked = f"index {index}" if slot_words == str(index) else f"`{slot_words}` is {index}"
    said = f"`{owner}` has {length} element{'' if length == 1 else 's'}, and {asked}"
    if (ranged := _through_all(account, owner, slot)) is not None:
        return Fault(said, "keep the index below the length.", *ranged)
    edit = account_edits.of_number(account, slot, lambda n: 0 <= n < length)
    if edit is not None:
        return Fault(said, "keep the index below the length.", None, edit)
    chains = [c for c in (chain_of(account, slot_words), chain_of(account, owner)) if c and not is_given(c[0])]
    chains = [c for c in chains if not _is_rank(c)] or chains
    chain = chains[0] if chains else ()
    link = counting_link(chain) if chain and chain[0].value.name == owner else root_in(account, chain)
    link = link or next((link for link in reversed(chain) if link.how in {"literal", "option", "default"}), None)
    short = bool(chain) and chain[0].value.name == owner
    fix = f"make `{owner}` longer than {index}." if short else "keep the index below the length."
    return Fault(said, fix, link or (chain[0] if chain else None))


def _through_all(account: Account, owner: str, slot: ast.expr) -> tuple[Link, Edit] | None:
    """Return the loop whose range gives an index, with the edit after which it ends where the elements do."""
    ahead, name = 0, slot
    match slot:
        case ast.BinOp(left=ast.Name() as name, op=ast.Add(), right=ast.Constant(value=int() as ahead)):
            pass
    link = next(iter(chain_of(account, ast.unparse(name))), None) if isinstance(name, ast.Name) else None
    made = next(iter(chain_of(account, owner)), None)
    if link is None or made is None or link.how != "loop" or ahead < 0:
        return None
    above = made.place.line < link.place.line or made.place.function != link.place.function
    match parse_line(f"{link.place.code} pass"):
        case ast.Module(body=[ast.For(iter=ast.Call(func=ast.Name(id="range"), args=[_] | [_, _]) as gone)]):
            count = f"len({owner}) - {ahead}" if ahead else f"len({owner})"
            edit = replace_expression(link.place, (gone.col_offset, gone.end_col_offset or 0), f"range({count})")
            return (link, edit._replace(meant=False)) if edit is not None and above else None
    return None


def _is_rank(chain: Sequence[Link]) -> bool:
    """True for a value that is this process's number, and no more: what it goes into is too short."""
    end = chain[-1] if len(chain) < 2 or chain[-1].value.text else chain[-2]
    begin, last = end.place.mark
    code = end.place.code[begin:last] if begin < last else end.place.code
    asks = end.how == "environment" and _RANK_VARIABLE.search(code) is not None
    return (asks or is_given(end)) and len({link.value.text for link in chain if link.value.text}) < 2


def _length(value: Value | None) -> int | None:
    if value is None or value.kind == "sequence":
        return value.length if value is not None else None
    if value.kind == "tensor":
        return value.shape[0] if value.shape else None
    held = value.fields["len"].plain if "len" in value.fields else None  # a list of modules
    return held if isinstance(held, int) else None


def _of_division(account: Account) -> Fault | None:
    """Return the divisor that is 0."""
    texts = values_at_failure(account)
    divisors = {
        ast.unparse(n.right)  # type: ignore[attr-defined]
        for n in nodes_of_line(account, ast.BinOp)
        if isinstance(n.op, ast.Div | ast.FloorDiv | ast.Mod) and not isinstance(n.right, ast.Constant)  # type: ignore[attr-defined]
    }
    zeros = {words for words in divisors if plain_value(texts.get(words, "")) == 0}
    if not account.with_values and len(divisors) == 1:
        zeros = divisors  # the error itself says what the only divisor was
    if len(zeros) != 1:
        return None
    (words,) = zeros
    exact = any(link.value.name == words for link in account.links)
    node = next(n.right for n in nodes_of_line(account, ast.BinOp) if ast.unparse(n.right) == words)  # type: ignore[attr-defined]
    made = ast.unparse(node.value) if isinstance(node, ast.Subscript) and not exact else words  # its key made no 0
    idle = _of_idle_loop(account, words)
    if idle is not None:
        return idle
    chain = [each for each in chain_of(account, made) if not re.search(r"[-+*/]= ", each.place.code)]  # these change it
    held = [each for each in chain if each.value.text]
    zero = [each for each in held if plain_value(each.value.text) == 0]
    link = root_in(account, chain) or next(iter((*zero[::-1], *held[::-1], *chain)), None)
    edit = account_edits.of_number(account, node, lambda n: n > 0)
    return Fault(
        f"`{words}` is 0, and the line divides by it",
        f"keep `{words}` above 0, or leave the line out where it is 0.",
        link,
        edit,
    )


_SIZES = re.compile(r"(?P<samples>\d{1,12}) samples, batch_size=(?P<size>\d{1,12}), drop_last=(?P<drops>True|False):")


def _of_idle_loop(account: Account, words: str = "") -> Fault | None:
    """Return the loop that was to change a value and ran no round, or what `next` takes from, and why it is empty."""
    links = account.links
    at = next((n for n, each in enumerate(links) if each.how == "loop" and each.value.name.startswith("len(")), None)
    if at is None or links[at].value.text != "0":
        return None
    loop, chain = links[at], chain_of(account, links[at].value.name)
    link, over = chain[-1], loop.value.name[4:-1]
    said = f"`{over}` gives nothing"
    if words:
        said = f"`{words}` is 0, because the loop over `{over}` ({where(loop.place)}) ran no round"
    sizes = _SIZES.match(link.value.text)
    if sizes is None:
        return Fault(said, f"`{over}` is empty: fill it, or leave out what follows where it is.", link)
    if sizes["samples"] == "0":
        return Fault(f"{said}: it has no samples on this rank", "give it one at least for each rank.", link)
    said += f": {sizes['samples']} samples, batch_size={sizes['size']} and drop_last={sizes['drops']} give 0 batches"
    return Fault(said, f"use a batch size of at most {sizes['samples']}, or drop_last=False.", link)


def _of_number(account: Account) -> Fault | None:
    """Return the expression that was to become a number."""
    matched = _INTO_NUMBER.match(account.exception)
    if matched is None:
        return None
    named = [name for name, text in values_at_failure(account).items() if text == matched["value"]]
    if len(named) != 1:
        return None
    link = last_with_value(account, named[0], matched["value"])
    return Fault(f"`{named[0]}` is {matched['value']}, which is no number", "give it a number.", link)


def _of_graph(account: Account) -> Fault | None:
    """Return the name that keeps the graph of the pass before."""
    kept = off_stack.graph_of_last_pass(account)
    return Fault(kept.said, kept.fix, kept.link, kept.edit, kept.at) if kept is not None else None


def _of_next(account: Account) -> Fault | None:
    """Return the loop that takes more from an iterator than there is."""
    at = next((n for n, link in enumerate(account.links) if link.how == "loop" and link.depth == 0), -1)
    rounds = read_value(account.links[at].value.text) if at >= 0 else None
    if rounds is None or not rounds.length:
        return _of_idle_loop(account)
    chain = (account.links[at], *takewhile(lambda link: link.depth > 0, account.links[at + 1 :]))
    said = f"`next` had nothing left: the loop runs {rounds.length} rounds, `{chain[0].value.name}`"
    held = next((each.value for each in account.links if each.value.name.startswith("len(") and not each.depth), None)
    edit = None
    if held is not None:
        said = f"{said}, and `{held.name}` is {held.text}"
        edit = replace_expression(chain[0].place, chain[0].place.mark, f"range({held.name})")
        edit = edit._replace(meant=False) if edit is not None else None
    link = counting_link(chain)
    other = f", or correct {where(link.place)}" if link is not None and edit is not None else ""
    return Fault(said, f"run as many rounds as there are batches on this rank{other}.", link, edit, likely=True)


_READERS: Final[dict[str, Callable[[Account], Fault | None]]] = {
    "KeyError": _of_key,
    "AttributeError": of_attribute,
    "TypeError": _of_type,
    "FileNotFoundError": of_file,
    "NotADirectoryError": of_file,
    "IndexError": _of_index,
    "StopIteration": _of_next,
    "ZeroDivisionError": _of_division,
    "ValueError": _of_number,
    "RuntimeError": _of_graph,
    "CheckpointException": of_checkpoint_keys,
}
