"""Python's own errors in a job, with the account of them: which value it was, where it came from, and near names."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise, takewhile
from typing import Final

from msgspec.structs import replace

from dtdebug_taxonomy.explanations import account_edits, off_stack
from dtdebug_taxonomy.explanations.account import by_culprit, decided_clause, is_given, reason_from
from dtdebug_taxonomy.explanations.account_words import Edit, diff_of, ranks_of, replace_expression, where
from dtdebug_taxonomy.explanations.checkpoint_keys import of_checkpoint_keys
from dtdebug_taxonomy.explanations.context import Context
from dtdebug_taxonomy.explanations.counting import counting_link
from dtdebug_taxonomy.explanations.faults import Fault
from dtdebug_taxonomy.explanations.launch_variables import of_unset_variable
from dtdebug_taxonomy.explanations.misplaced_arguments import of_arguments
from dtdebug_taxonomy.explanations.model import Explanation, explanation_for, with_diff
from dtdebug_taxonomy.explanations.refused_words import of_states, of_word
from dtdebug_taxonomy.explanations.text_for_number import of_text_for_number
from dtdebug_taxonomy.explanations.unmatched_branches import of_unmatched
from dtdebug_taxonomy.inference.account_call import chains_of, parse_line, read_call, tree_of
from dtdebug_taxonomy.model.account import Account, Link, NamedValue, Place
from dtdebug_taxonomy.model.launch_variables import name_elsewhere
from dtdebug_taxonomy.model.rank_ranges import ranges
from dtdebug_taxonomy.model.snapshot import walk
from dtdebug_taxonomy.text.near_names import near_name
from dtdebug_taxonomy.text.pattern_matcher import plain
from dtdebug_taxonomy.text.value_texts import Value, read_value

EVIDENCE, TWO_SIDES = "value-of-an-error", "one-of-two-sides"
"""The second where two places do not fit together and nothing shows which of them is wrong."""
_PROBABILITY = 0.8
_KEY = re.compile(r"KeyError: (?P<key>'[^']{1,80}'|\"[^\"]{1,80}\"|-?\d{1,12})\Z")
_ATTRIBUTE = re.compile(r"AttributeError: '(?P<kind>\w{1,80})' object has no attribute '(?P<name>\w{1,80})'")
_FILE = re.compile(r"(?:FileNotFoundError|NotADirectoryError): .{0,60}?: (?P<path>'[^']{1,400}'|\"[^\"]{1,400}\")\Z")
_INTO_NUMBER = re.compile(
    r"ValueError: (?:invalid literal for int\(\) with base 10|could not convert string to float): "
    r"(?P<value>'[^']{0,80}')\Z"
)
_NAMES = re.compile(r"[A-Za-z0-9]{1,80}")
_MOST_KEYS = 6
_WRAPPERS = frozenset({"DistributedDataParallel", "DataParallel"})


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
            found = found or of_states(account, printed)
        if found is not None:
            found = of_unset_variable(found, snapshot.environment) or found
            yield _explanation(context, account, found, accounts)
            return


def _explanation(context: Context, account: Account, found: Fault, accounts: Sequence[Account]) -> Explanation:
    same = [a for a in accounts if a.exception == account.exception and a.place == account.place]
    ranks, everyone = ranks_of(same), ranks_of(accounts)
    prefix = f"Rank{'s' if len(ranks) > 1 else ''} {ranges(ranks)}: " if ranks and ranks != everyone else ""
    title = f"{prefix}{found.said}{decided_clause(account, found.link, found.other)}"
    place = found.at or (found.edit.place if found.edit is not None else None)
    place = place or (found.link.place if found.link is not None else account.place)
    fix = f"Edit {where(place)}: {found.fix}" if place is not None else found.fix
    why = "The line that raised uses this value."
    if len(ranks) > 1 and ranks == everyone:
        why = f"Ranks {ranges(ranks)} failed alike: the program is wrong, not a rank's data."
    evidence = found.evidence or (TWO_SIDES if found.other is not None or found.likely else EVIDENCE)
    reason = reason_from(account, evidence)
    whole = explanation_for(context.symptom, plain(title, 500), why, plain(fix, 500), _PROBABILITY, reason)
    diff = diff_of(found.edit, context.incident.snapshot.excerpts) if found.edit is not None else ""
    whole = with_diff(whole, diff)
    return whole if place is None else replace(whole, file=place.file, line=place.line)


def _texts(account: Account) -> dict[str, str]:
    """Return the expressions whose values are known at the line that raised."""
    refusal = account.refusal
    found = {link.value.name: link.value.text for link in reversed(account.links) if link.depth == 0}
    if refusal is not None and refusal.place is None:  # else these are names of the library
        found.update((v.name, v.text) for v in refusal.values)
    return {name: text for name, text in found.items() if text}


def _chain(account: Account, words: str) -> tuple[Link, ...]:
    return next(iter(chains_of(account, words)), ())


def _last_with_value(account: Account, words: str, text: str) -> Link | None:
    """Return the last link of an expression's way back that still has its value: there it was made."""
    chain = _chain(account, words)
    held = [link for link in chain if link.value.text == text]
    return held[-1] if held else None


def _nodes(account: Account, kind: type[ast.expr]) -> list[ast.expr]:
    tree = tree_of(account.place) if account.place is not None else None
    return [n for n in ast.walk(tree) if isinstance(n, kind)] if tree is not None else []


def _of_variable(account: Account, environment: Mapping[str, str]) -> Fault | None:
    """Return the variable that is not set, if the launcher set one of a near name."""
    matched = _KEY.match(account.exception)
    name = ast.literal_eval(matched["key"]) if matched is not None else None
    if not isinstance(name, str) or account.place is None or not account.place.code.isascii():
        return None
    asked = [
        n.slice  # type: ignore[attr-defined]
        for n in _nodes(account, ast.Subscript)
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
    chain = _chain(account, ast.unparse(slot))
    tree = parse_line(chain[0].place.code) if chain and chain[0].how in {"assigned", "called", "returned"} else None
    value = getattr(tree.body[0], "value", None) if isinstance(tree, ast.Module) and tree.body else None
    return chain[0] if value is not None and not isinstance(value, ast.Constant | ast.Name | ast.Attribute) else None


def _of_key(account: Account) -> Fault | None:
    """Return the mapping that has no such key, its keys, and the near one."""
    matched = _KEY.match(account.exception)
    if matched is None:
        return None
    key, texts = ast.literal_eval(matched["key"]), _texts(account)
    rows = []
    for node in _nodes(account, ast.Subscript):
        owner, slot = ast.unparse(node.value), node.slice  # type: ignore[attr-defined]
        value = read_value(texts.get(owner, ""))
        written = slot.value if isinstance(slot, ast.Constant) else _plain(texts.get(ast.unparse(slot), ""))
        unknown = not isinstance(slot, ast.Constant) and ast.unparse(slot) not in texts and value is not None
        if value is not None and value.kind == "mapping" and (written == key or (unknown and value.whole)):
            rows.append((owner, slot, value))
    if len(rows) != 1 or (not rows[0][2].whole and str(key) in rows[0][2].keys):
        return None
    owner, slot, value = rows[0]
    keys = [k for k in value.keys if k != str(key)]
    near = near_name(str(key), keys) if isinstance(key, str) else ""
    shown = ", ".join(repr(k) if isinstance(key, str) else k for k in keys[:_MOST_KEYS])
    more = "" if value.whole and len(keys) <= _MOST_KEYS else ", ..."
    has = f"it has {shown}{more}" if keys else "it is empty" if value.whole else "its keys are not at hand"
    edit = None
    if near and isinstance(slot, ast.Constant) and account.place is not None and account.place.code.isascii():
        quote = account.place.code[slot.col_offset]
        written = f"{quote}{near}{quote}" if quote in "'\"" and quote not in near else repr(near)
        edit = replace_expression(account.place, (slot.col_offset, slot.end_col_offset or 0), written)
    fix = f"ask for {near!r}." if near else f"add {key!r} to it, or ask for a key that it has."
    chain = _chain(account, owner)
    link = _last_with_value(account, owner, texts[owner])
    if any(each.how == "file" for each in chain):
        link = _root_in(account, chain) or link
    if near and not isinstance(slot, ast.Constant):
        said = f"write and ask for keys in one way: {near!r} was written, and {key!r} is asked for."
        return Fault(f"`{owner}` has no key {key!r}: {has}", said, link)
    if not near and isinstance(key, str) and (computed := _computing_link(account, slot)) is not None:
        words = ast.unparse(slot)
        sources = {each.value.text: each for each in _chain(account, words)[1:] if repr(key)[1:-1] in each.value.text}
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


def _plain(text: str) -> object:
    value = read_value(text)
    return value.plain if value is not None else None


def _of_attribute(account: Account) -> Fault | None:
    """Return the object that has no such attribute: None, options, or a model in its wrapper."""
    matched = _ATTRIBUTE.match(account.exception)
    if matched is None:
        return None
    texts, name = _texts(account), matched["name"]
    owners = {ast.unparse(n.value): n for n in _nodes(account, ast.Attribute) if n.attr == name}  # type: ignore[attr-defined]
    if len(owners) != 1:
        return None
    ((owner, node),) = owners.items()
    text = texts.get(owner, "")
    if matched["kind"] == "NoneType":
        return _of_none(account, owner) if text == "None" else None
    value = read_value(text)
    if value is None or value.name != matched["kind"] or account.place is None:
        return None
    link, span = _last_with_value(account, owner, text), (node.col_offset, node.end_col_offset or 0)
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
    untaken = next((each for each in _chain(account, owner) if each.how == "tested"), None)
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


def _of_none(account: Account, words: str) -> Fault:
    chain = _chain(account, words)
    link = _last_with_value(account, words, "None")
    if (own := _by_rank_in(account, chain)) is not None and link is not None:
        given = f"give every rank the same there, or test `{words}` for None."
        shared = _share(account, chain)
        if shared is not None:
            given = "let rank 0 send it to the other ranks: it is None on them."
        return Fault(f"`{words}` is None, and hangs on what each rank has of its own", given, own, shared)
    made = link.place.code if link is not None else ""
    tree = parse_line(made)
    call = getattr(tree.body[0], "value", None) if isinstance(tree, ast.Module) and tree.body else None
    fix = f"let `{words}` be set on every path, or test it for None first."
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


def _of_type(account: Account) -> Fault | None:
    """Return the one expression of the line that is None, if the error speaks of None."""
    if "NoneType" not in account.exception:
        return _of_kind(account)
    texts = _texts(account)
    written = {
        ast.unparse(n) for kind in (ast.Name, ast.Attribute, ast.Subscript, ast.Call) for n in _nodes(account, kind)
    }
    nothing = [name for name in written if texts.get(name) == "None"]
    return _of_none(account, nothing[0]) if len(nothing) == 1 else None


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
        for name, text in _texts(account).items()
        if (value := read_value(text)) is not None and value.name == matched["kind"]
    ]
    if len(rows) != 1:
        return None
    words = rows[0]
    chain = _chain(account, words)
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
            names, given = [ast.unparse(e) for e in target.elts], [ast.unparse(e) for e in call.args]
            if names == given or sorted(names) != sorted(given) or not link.place.code.isascii():
                return None
            span = (target.elts[0].col_offset, target.elts[-1].end_col_offset or 0)
            return replace_expression(link.place, span, ", ".join(given))
    return None


def _of_file(account: Account) -> Fault | None:
    """Return the expression that named the missing file."""
    matched = _FILE.match(account.exception)
    if matched is None:
        return None
    path = ast.literal_eval(matched["path"])
    call = read_call(account)
    given = {words: call.texts.get(name, "") for name, (words, _) in call.expressions.items()}
    named = [name for name, text in {**given, **_texts(account)}.items() if _path(text) == path]
    words = next(iter(named), "")
    late = off_stack.file_of_another_rank(account)
    if late is not None:
        name = path.rstrip("/").rpartition("/")[2]
        return Fault(f"{name} is not there yet: {late.said}", late.fix, None, late.edit, late.at, likely=late.likely)
    writer = off_stack.writer_of_missing_file(account)
    if writer is not None:
        name = f"`{words}` is {path!r}, which does not exist" if words else f"{path!r} does not exist"
        said = (
            f"{name} on this rank; `{plain(writer.place.code, 80)}` ({where(writer.place)}) writes a file of that name"
        )
        fix = (
            "let each rank that reads the file wait until it is written (a barrier after the write), at this very path."
        )
        return Fault(said, fix, None, None, writer.place, likely=True)
    chain = _chain(account, words)
    root = _root_in(account, chain)
    own = _by_rank_in(account, chain)
    link = own or _last_with_value(account, words, repr(path)) or root or (chain[0] if chain else None)
    relative = not path.startswith(("/", "~")) and path[1:2] != ":"
    start = "; a relative path counts from the folder in which the rank was started" if relative else ""
    said = f"`{words}` is {path!r}, which does not exist" if words else f"{path!r} does not exist"
    if path.startswith("~"):
        said, start = f"{said}: `~` is not expanded here", "; use `os.path.expanduser`"
    if own is not None:
        said = f"{said}: the path is made of what each rank has of its own"
        return Fault(
            said, "name a file that some rank has written, such as rank 0's, or let this rank write its.", link
        )
    return Fault(said, f"name a file that exists on this host, or write it before it is read{start}.", link)


def _path(text: str) -> str:
    value = read_value(text.removeprefix("Path(").removesuffix(")"))
    return value.plain if value is not None and isinstance(value.plain, str) else ""


_RANK_VARIABLE = re.compile(r"['\"](?:[A-Z]{1,20}_)?(?:RANK|LOCAL_RANK|PROCID|LOCALID)['\"]")
_OUT_OF_RANGE = re.compile(r"index (?:-?\d{1,12} is )?out of range")


def _of_index(account: Account) -> Fault | None:
    """Return the index with the length of what it goes into."""
    if not _OUT_OF_RANGE.search(account.exception):
        return None
    texts, rows = _texts(account), []
    for node in _nodes(account, ast.Subscript):
        owner, slot = ast.unparse(node.value), node.slice  # type: ignore[attr-defined]
        index = slot.value if isinstance(slot, ast.Constant) else _plain(texts.get(ast.unparse(slot), ""))
        length = _length(read_value(texts.get(owner, "")))
        if isinstance(index, int) and length is not None and not -length <= index < length:
            rows.append((owner, slot, index, length))
    if len(rows) != 1:
        return None
    owner, slot, index, length = rows[0]
    slot_words = ast.unparse(slot)
    asked = f"index {index}" if slot_words == str(index) else f"`{slot_words}` is {index}"
    said = f"`{owner}` has {length} element{'' if length == 1 else 's'}, and {asked}"
    edit = account_edits.of_number(account, slot, lambda n: 0 <= n < length)
    if edit is not None:
        return Fault(said, "keep the index below the length.", None, edit)
    chains = [c for c in (_chain(account, slot_words), _chain(account, owner)) if c and not is_given(c[0])]
    chains = [c for c in chains if not _is_rank(c)] or chains
    chain = chains[0] if chains else ()
    link = counting_link(chain) if chain and chain[0].value.name == owner else _root_in(account, chain)
    link = link or next((link for link in reversed(chain) if link.how in {"literal", "option", "default"}), None)
    short = bool(chain) and chain[0].value.name == owner
    fix = f"make `{owner}` longer than {index}." if short else "keep the index below the length."
    return Fault(said, fix, link or (chain[0] if chain else None))


def _is_rank(chain: Sequence[Link]) -> bool:
    """True for a value that is this process's number, and no more: what it goes into is too short."""
    end = chain[-1] if len(chain) < 2 or chain[-1].value.text else chain[-2]
    begin, last = end.place.mark
    code = end.place.code[begin:last] if begin < last else end.place.code
    asks = end.how == "environment" and _RANK_VARIABLE.search(code) is not None
    return (asks or is_given(end)) and len({link.value.text for link in chain if link.value.text}) < 2


def _root_in(account: Account, chain: Sequence[Link]) -> Link | None:
    """Return the link that decided the value, if it lies on a way back."""
    root = account.links[account.root] if 0 <= account.root < len(account.links) else None
    return root if root in chain else None


def _by_rank_in(account: Account, chain: Sequence[Link]) -> Link | None:
    """Return the link at which what the rank has of its own comes in, if it lies on a way back."""
    link = account.links[account.by_rank] if 0 <= account.by_rank < len(account.links) else None
    return link if link in chain else None


def _length(value: Value | None) -> int | None:
    if value is None or value.kind == "sequence":
        return value.length if value is not None else None
    held = value.fields["len"].plain if "len" in value.fields else None  # a list of modules
    return held if isinstance(held, int) else None


def _of_division(account: Account) -> Fault | None:
    """Return the divisor that is 0."""
    texts = _texts(account)
    divisors = {
        ast.unparse(n.right)  # type: ignore[attr-defined]
        for n in _nodes(account, ast.BinOp)
        if isinstance(n.op, ast.Div | ast.FloorDiv | ast.Mod) and not isinstance(n.right, ast.Constant)  # type: ignore[attr-defined]
    }
    zeros = {words for words in divisors if _plain(texts.get(words, "")) == 0}
    if not account.with_values and len(divisors) == 1:
        zeros = divisors  # the error itself says what the only divisor was
    if len(zeros) != 1:
        return None
    (words,) = zeros
    exact = any(link.value.name == words for link in account.links)
    node = next(n.right for n in _nodes(account, ast.BinOp) if ast.unparse(n.right) == words)  # type: ignore[attr-defined]
    made = ast.unparse(node.value) if isinstance(node, ast.Subscript) and not exact else words  # its key made no 0
    idle = _of_idle_loop(account, words)
    if idle is not None:
        return idle
    chain = [each for each in _chain(account, made) if not re.search(r"[-+*/]= ", each.place.code)]  # these change it
    link = _root_in(account, chain) or next((each for each in reversed(chain) if each.value.text), None)
    link = link or (chain[0] if chain else None)
    edit = account_edits.of_number(account, node, lambda n: n > 0)
    return Fault(
        f"`{words}` is 0, and the line divides by it",
        f"keep `{words}` above 0, or leave the line out where it is 0.",
        link,
        edit,
    )


_SIZES = re.compile(r"(?P<samples>\d{1,12}) samples, batch_size=(?P<size>\d{1,12}), drop_last=(?P<drops>True|False):")


def _of_idle_loop(account: Account, words: str) -> Fault | None:
    """Return the loop that was to change a value and ran no round, and what leaves it empty."""
    links = account.links
    at = next((n for n, each in enumerate(links) if each.how == "loop" and each.value.name.startswith("len(")), None)
    if at is None or links[at].value.text != "0":
        return None
    loop, chain = links[at], _chain(account, links[at].value.name)
    link, over = chain[-1], loop.value.name[4:-1]
    said = f"`{words}` is 0, because the loop over `{over}` ({where(loop.place)}) ran no round"
    sizes = _SIZES.match(link.value.text)
    if sizes is None:
        return Fault(said, f"`{over}` is empty: fill it, or leave out what follows where it is.", link)
    if sizes["samples"] == "0":
        return Fault(f"{said}: its data set has no samples", "give the loader samples.", link)
    said += f": {sizes['samples']} samples, batch_size={sizes['size']} and drop_last={sizes['drops']} give 0 batches"
    return Fault(said, f"use a batch size of at most {sizes['samples']}, or drop_last=False.", link)


def _of_number(account: Account) -> Fault | None:
    """Return the expression that was to become a number."""
    matched = _INTO_NUMBER.match(account.exception)
    if matched is None:
        return None
    named = [name for name, text in _texts(account).items() if text == matched["value"]]
    if len(named) != 1:
        return None
    link = _last_with_value(account, named[0], matched["value"])
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
        return None
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
    "AttributeError": _of_attribute,
    "TypeError": _of_type,
    "FileNotFoundError": _of_file,
    "NotADirectoryError": _of_file,
    "IndexError": _of_index,
    "StopIteration": _of_next,
    "ZeroDivisionError": _of_division,
    "ValueError": _of_number,
    "RuntimeError": _of_graph,
    "CheckpointException": of_checkpoint_keys,
}
