"""Finds the object that lacks an attribute, or the call that returned None, and where it was made."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from itertools import pairwise

from dtdebug_taxonomy.explanations import off_stack
from dtdebug_taxonomy.explanations.account_values import (
    chain_of,
    last_with_value,
    nodes_of_line,
    rank_link_in,
    values_at_failure,
)
from dtdebug_taxonomy.explanations.account_words import Edit, replace_expression
from dtdebug_taxonomy.explanations.faults import Fault
from dtdebug_taxonomy.explanations.unmatched_branches import of_unmatched
from dtdebug_taxonomy.inference.account_call import parse_line
from dtdebug_taxonomy.model.account import Account, Link, NamedValue, Place
from dtdebug_taxonomy.text.near_names import near_name
from dtdebug_taxonomy.text.value_texts import read_value

_ATTRIBUTE = re.compile(r"AttributeError: '(?P<kind>\w{1,80})' object has no attribute '(?P<name>\w{1,80})'")
_WRAPPERS = frozenset({"DistributedDataParallel", "DataParallel"})


def of_attribute(account: Account) -> Fault | None:
    """Return the object that has no such attribute: None, options, or a model in its wrapper."""
    matched = _ATTRIBUTE.match(account.exception)
    if matched is None:
        return None
    texts, name = values_at_failure(account), matched["name"]
    owners = {ast.unparse(n.value): n for n in nodes_of_line(account, ast.Attribute) if n.attr == name}  # type: ignore[attr-defined]
    if len(owners) != 1:
        return None
    ((owner, node),) = owners.items()
    text = texts.get(owner, "")
    crossed = _of_other_order(account, owner, name)
    if crossed is not None or matched["kind"] == "NoneType":
        return crossed or (of_none(account, owner) if text == "None" else None)
    value = read_value(text)
    if value is None or value.name != matched["kind"] or account.place is None:
        return None
    link, span = last_with_value(account, owner, text), (node.col_offset, node.end_col_offset or 0)
    if value.name in _WRAPPERS:
        edit = replace_expression(account.place, span, f"{owner}.module.{name}")
        inner = value.items[0].name if value.items else "the model"
        return Fault(
            f"`{owner}` is {inner} wrapped in {value.name}, and the wrapper has no attribute `{name}`",
            f"ask the model inside: `{owner}.module.{name}`.", link, edit, account.place,
        )  # fmt: skip
    if value.name.startswith("FSDP") and name == "no_sync":
        step = f"`{owner}.set_requires_gradient_sync(False)`"
        said = f"`{owner}` is sharded by `fully_shard` ({value.name}), which gives it no `no_sync`"
        return Fault(said, f"call {step} before the passes that only accumulate, with True before the last.", None)
    if name == "module" and value.kind == "module":
        bare = f'getattr({owner}, "module", {owner})'
        edit = replace_expression(account.place, span, bare)
        return Fault(
            f"`{owner}` is {value.name}, not wrapped in DistributedDataParallel in this run, and has no `module`",
            f"take it where there is one: `{bare}`.", link, edit, account.place,
        )  # fmt: skip
    untaken = next((each for each in chain_of(account, owner) if each.how == "tested"), None)
    if untaken is not None:
        test = untaken.value.name
        way = untaken.value.text or "False"
        said = (
            f"`{owner}` is {value.name}, which has no `{name}`: `{test}` is {way}, so that nothing else was made of it"
        )
        hold, does = ("not hold", "does") if way == "True" else ("hold", "does not")
        return Fault(said, f"let `{test}` {hold} in this run, or leave `{name}` out where it {does}.", untaken)
    parts = [each.value for each in account.beside if each.value.name.rpartition(".")[0] == owner]
    if len(parts) == 1:
        part = parts[0].name
        edit = replace_expression(account.place, span, f"{part}.{name}")
        said = f"`{owner}` is {value.name}, which has no `{name}`: its `{part.rpartition('.')[2]}` has it"
        return Fault(said, f"write `{part}.{name}`.", link, edit, account.place)
    if (around := _wrapper(account, owner, span)) is not None:
        held = read_value(around.text)
        kind = f", the {held.name} of it," if held is not None and held.name else ""
        edit = replace_expression(account.place, span, f"{around.name}.{name}")
        said = f"`{owner}` is {value.name}, which has no `{name}`: `{around.name}`{kind} has it"
        return Fault(said, f"write `{around.name}.{name}`.", None, edit, account.place)
    near = near_name(name, value.fields)
    if not near and link is not None and value.plain is not None and link.how in {"literal", "attribute"}:
        return Fault(f"`{owner}` is {text}, which has no `{name}`", "give it there what the line needs.", link)
    if not near:
        return None
    edit = replace_expression(account.place, span, f"{owner}.{near}")
    return Fault(
        f"`{owner}` has no attribute `{name}`: it has `{near}`",
        f"write `{owner}.{near}`.",
        link,
        edit,
        account.place,
    )


def _wrapper(account: Account, owner: str, span: tuple[int, int]) -> NamedValue | None:
    """Return the one object that holds another and has the attribute which that lacks."""
    place = account.place
    found = [
        each.value
        for each in account.beside
        if each.how == "attribute" and each.place == place and not each.value.name.startswith(f"{owner}.")
    ]
    return found[0] if len(found) == 1 and span[0] < span[1] else None


def _of_other_order(account: Account, owner: str, name: str) -> Fault | None:
    """Return the call that takes objects in another order than that in which the names before it take them back."""
    link = next((each for each in account.links if each.value.name == owner and each.depth == 0), None)
    match parse_line(link.place.code) if link is not None and link.place.code.isascii() else None:
        case ast.Module(body=[ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Call(args=given, keywords=[]))]):
            order, taken = ([ast.unparse(each) for each in row] for row in (names, given))
        case _:
            return None
    if link is None or order == taken or sorted(order) != sorted(taken):
        return None
    span = (given[0].col_offset, given[-1].end_col_offset or 0)
    edit = replace_expression(link.place, span, ", ".join(order))
    said = f"`{owner}` has no `{name}`: it is what was passed as `{taken[order.index(owner)]}`"
    return Fault(said, "pass the objects in the order of the names that take them.", link, edit, likely=True)


def of_none(account: Account, words: str) -> Fault:
    """Return the expression that is None, and the line at which it got that value."""
    chain = chain_of(account, words)
    link = last_with_value(account, words, "None")
    if (own := rank_link_in(account, chain)) is not None and link is not None:
        given = f"give every rank the same there, or test `{words}` for None."
        shared = _share(account, chain)
        if shared is not None:
            given = "let rank 0 send it to the other ranks: it is None on them."
        return Fault(f"`{words}` is None, and hangs on what each rank has of its own", given, own, shared)
    made = link.place.code if link is not None else ""
    tree = parse_line(made)
    call = getattr(tree.body[0], "value", None) if isinstance(tree, ast.Module) and tree.body else None
    fix = f"let `{words}` be set on every path, or test it for None first."
    if (caught := next((each for each in chain if each.how == "caught"), None)) is not None:
        return Fault(f"`{words}` is None", "", caught)
    if (missing := off_stack.setter_never_called(account, words)) is not None:
        return Fault(f"`{words}` is None: {missing.said}", missing.fix, missing.link, missing.edit, missing.at)
    if (unmatched := of_unmatched(words, chain)) is not None:
        return unmatched
    whole = bool(_target_of(made)) or made.startswith("return")
    if isinstance(call, ast.Call) and link is not None and link.how in {"called", "returned"} and whole:
        fix = f"`{ast.unparse(call.func)}` returned None here: let it return a value, or test for None."
    end = chain[-1] if chain and chain[-1].how == "returned" and chain[-1].value.text == "None" else None
    edit = _add_return(end.place) if end is not None else None
    if end is not None and edit is not None:
        said = f"`{words}` is None: `{end.place.function}` ends without a `return`"
        return Fault(said, f"return `{_target_of(end.place.code)}` there, which is made and not used.", end, edit)
    return Fault(f"`{words}` is None", fix, link)


def show_what_was_caught(caught: Link) -> str:
    """Return the fix where an exception was passed over."""
    return f"put `raise` into its `except` to see what fails in {caught.value.name}."


def _share(account: Account, chain: Sequence[Link]) -> Edit | None:
    """Return the line that gives a value to rank 0 alone, with two more by which rank 0 sends it to the others.

    Every rank runs that line: this one has None of it.
    """
    dist, place = account.modules[1], account.place
    if not dist or place is None or account.rank in {0, None}:
        return None
    for link, below in pairwise(chain):
        name, call = _target_of(link.place.code), re.search(r"= ([\w.]{1,80})\(", link.place.code)
        wrapped = below.how == "returned" and re.match(r"return(?: None)?\Z|@|if ", below.place.code)
        if name and call is not None and wrapped and link.value.text == "None" and link.place.file == place.file:
            rows = (f"shared = [{name}]", f"{dist}.broadcast_object_list(shared, src=0)", f"{name} = shared[0]")
            return Edit(link.place, "\n".join((link.place.code, *rows)))
    return None


def _add_return(place: Place) -> Edit | None:
    """Return the last line of a function with a `return` of what it assigns; None if it assigns no single name."""
    name = _target_of(place.code)
    return Edit(place, f"{place.code}\nreturn {name}") if name else None


def _target_of(code: str) -> str:
    tree = parse_line(code)
    match tree:
        case ast.Module(body=[ast.Assign(targets=[ast.Name(id=name)])]):
            return name
    return ""
