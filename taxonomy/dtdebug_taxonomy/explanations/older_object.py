"""An object that was made of a model before that was converted: sharded, moved, or given another dtype."""

from __future__ import annotations

import ast
from itertools import permutations

from dtdebug_taxonomy.explanations.account_words import Edit, where
from dtdebug_taxonomy.explanations.faults import Fault
from dtdebug_taxonomy.inference.account_call import chains_of, parse_line
from dtdebug_taxonomy.model.account import Account, Link
from dtdebug_taxonomy.text.value_texts import Value, read_value


def of_older_object(account: Account) -> Fault | None:
    """Return the line that made a refused tensor of what a later line converted, if both tensors have one shape."""
    given = account.refusal.values if account.refusal is not None else ()
    read = {v.name: value for v in given if (value := read_value(v.text)) is not None and value.kind == "tensor"}
    for (old, one), (new, other) in permutations(read.items(), 2):
        if one.shape != other.shape or (says := _unlike(one, other)) is None:
            continue
        for converted in (link for chain in chains_of(account, new) for link in chain):
            name = _converted_name(converted)
            made = next((link for link in _passed(account, old, name) if _is_above(link, converted)), None)
            if made is None:
                continue
            said = f"`{old}` is {says[0]}, `{new}` is {says[1]}: it was made of `{name}` as that was before "
            said += f"`{converted.place.code}` ({where(converted.place)})"
            edit = Edit(converted.place, converted.place.code, moved=made.place)
            return Fault(said, f"move it below line {converted.place.line}.", made, edit, made.place)
    return None


def _unlike(one: Value, other: Value) -> tuple[str, str] | None:
    if one.name != other.name and "DTensor" in {one.name, other.name}:
        return f"a {one.name}", f"a {other.name}"
    pairs = ((one.device, other.device), (one.dtype, other.dtype))
    return next(((mine, its) for mine, its in pairs if mine and its and mine != its), None)


def _converted_name(link: Link) -> str:
    """Return the name that a line gives what it makes of it: `model = shard(model)`; empty for another line."""
    match parse_line(link.place.code):
        case ast.Module(body=[ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call)]):
            return name if any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(call)) else ""
    return ""


def _passed(account: Account, words: str, name: str) -> list[Link]:
    chains = chains_of(account, words) if name else []
    return [link for chain in chains for link in chain if link.how == "passed" and link.value.name == name]


def _is_above(made: Link, converted: Link) -> bool:
    one, other = made.place, converted.place
    return (one.file, one.function) == (other.file, other.function) and one.line < other.line
