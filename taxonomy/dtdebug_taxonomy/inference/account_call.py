"""The call that an account tells of: the user's expression and the value of each parameter, as contracts ask for them.

Values come from the account; where it has none, as for a printed traceback, literals of the user's line have theirs.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence

from dtdebug_taxonomy.model.account import Account, Link, NamedValue, Place
from dtdebug_taxonomy.text.contract_call import Span, UserCall, short_name
from dtdebug_taxonomy.text.demands import DemandError, Scope, UnknownTermError, value_of
from dtdebug_taxonomy.text.value_texts import Value, read_value

_NOT_WORD = re.compile(r"\W+")
_MAX_VALUES = 200
_WORLD = re.compile(r"\b(?:[\w.]{1,80}\.)?get_(?P<what>rank|world_size)\(\)")
_MODULES = frozenset({"F", "torch", "torch.nn.functional"})
"""Names of modules before a function that a line of torch calls."""
_OWN = frozenset({"forward", "__init__", "__call__"})
"""Functions whose names of parameters are those of the API, besides the one that has its name."""


def read_call(account: Account, parameters: Sequence[str] = (), *, inner: bool = False) -> UserCall:
    """Return the call of an account.

    `parameters` are those of the API in order, with their defaults (`group=None`), `*name` for a variable number.
    `inner`: it is the call within the library on which the exception rests; the user's names are then unknown.
    """
    refusal = account.refusal
    api = refusal.api if refusal is not None else ""
    arguments = refusal.arguments[:_MAX_VALUES] if refusal is not None else ()
    order = tuple(p.partition("=")[0] for p in parameters) or tuple(
        a.name for a in arguments if a.name not in {"self", "cls"}
    )
    node = _call_of(account, api)
    expressions, module = _bind(node, account.place.code if account.place else "", order, api)
    shown = {name: found for name, found in expressions.items() if name == "self"} if inner else expressions
    known = {a.name for a in arguments if a.text}
    texts = {_NOT_WORD.sub("_", fact.name.lower()): _fact_text(fact) for fact in account.facts[:_MAX_VALUES]}
    facts = frozenset(texts)
    library = {v.name: v.text for v in refusal.values[:_MAX_VALUES]} if refusal is not None else {}
    user = expressions
    if inner:
        place = refusal.place if refusal is not None else None
        node, known = library_call(place), set()
        expressions, _ = _bind(node, place.code if place else "", order, "")
        written = library
        texts |= library
        shown |= _passed_through(expressions, library, user, arguments)
    else:
        at = refusal.place if refusal is not None else None
        own = at is not None and at.function in {short_name(api), *_OWN}
        texts |= {name: text for name, text in library.items() if at is not None and (own or name not in order)}
        written = {} if at is not None else library  # the user's own expressions, where compiled code raised
        shown_links = (link.value for link in reversed(account.links) if link.depth == 0 and link.value.text)
        written |= {value.name: value.text for value in shown_links}
        written |= {a.name: a.text for a in arguments if a.name not in order and a.text}
        texts |= {a.name: a.text for a in arguments if a.text}
    for name, (words, _) in expressions.items():
        if name not in known and (text := written.get(_normal(words))):
            texts[name] = text
    texts = {name: text for name, text in texts.items() if text}
    values = {name: value for name, text in texts.items() if (value := read_value(text)) is not None}
    around = {name: value for name, text in written.items() if (value := read_value(text)) is not None}
    around |= {f"__{name}__": values[name] for name in facts & {"rank", "world_size"} & {*values}}
    for name, (words, _) in expressions.items():
        value = values.get(name) or (_several(words, around) if f"*{name}" in order else work_out(words, around))
        if value is not None:
            values[name] = value
            texts.setdefault(name, words)
    if isinstance(node, ast.Call) and not _is_open(node):
        defaults = (p.partition("=") for p in parameters if "=" in p)
        omitted = {n: d for n, _, d in defaults if n not in {*known, *expressions}}  # a library may have rebound them
        values |= {n: value for n, d in omitted.items() if (value := work_out(d, {})) is not None}
        texts |= omitted
    _add_members(values, texts)
    tests = refusal.tests if refusal is not None else ()
    passed = frozenset(_normal(text if way else f"not ({text})") for text, way in tests)
    return UserCall(short_name(api), module, shown, texts, Scope(values, passed, account.exception))


def _fact_text(fact: NamedValue) -> str:
    """Return the text of a fact, a word such as the name of a backend as a string."""
    return repr(fact.text) if fact.text.isidentifier() and fact.text not in {"None", "True", "False"} else fact.text


def _passed_through(
    inner: Mapping[str, tuple[str, Span]],
    library: Mapping[str, str],
    user: Mapping[str, tuple[str, Span]],
    arguments: Sequence[NamedValue],
) -> dict[str, tuple[str, Span]]:
    """Return the user's expressions of the tensors that reach a call within the library as they were passed."""
    given = [(user[a.name], a.text) for a in arguments if a.name in user and _is_tensor(a.text)]
    found = {}
    for name, (words, _) in inner.items():
        same = [expression for expression, text in given if text == library.get(words)]
        if len(same) == 1:
            found[name] = same[0]
    return found


def _is_tensor(text: str) -> bool:
    value = read_value(text)
    return value is not None and value.kind == "tensor"


def _is_open(call: ast.Call) -> bool:
    """True if a call passes on arguments that its line does not name."""
    return any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords)


def chains_of(account: Account, words: str) -> list[tuple[Link, ...]]:
    """Return the ways back of one of the user's expressions, or of each name in it, the value first."""
    names, links = names_in_words(words), account.links
    exact = [at for at, link in enumerate(links) if link.value.name == _normal(words)][:1]
    return [_chain(links, at) for at in exact or [n for n, each in enumerate(links) if each.value.name in names]]


def _chain(links: Sequence[Link], at: int) -> tuple[Link, ...]:
    end = next((n for n in range(at + 1, len(links)) if links[n].depth <= links[at].depth), len(links))
    return tuple(links[at:end])


def names_in_words(words: str) -> frozenset[str]:
    """Return the names and attributes that an expression mentions."""
    tree = parse_line(words)
    if tree is None:
        return frozenset()
    return frozenset(ast.unparse(n) for n in ast.walk(tree) if isinstance(n, ast.Name | ast.Attribute | ast.Subscript))


def _several(words: str, around: Mapping[str, Value]) -> Value | None:
    """Return the values of a variable number of arguments as one tuple."""
    value = work_out(f"({words},)", around)
    return value.items[0] if value is not None and len(value.items) == 1 and value.items[0].items else value


def work_out(words: str, around: Mapping[str, Value]) -> Value | None:
    """Return the value of an expression of known values: literals, names, lengths, arithmetic, lists and their repeats.

    `get_rank()` and `get_world_size()` are known by these names, whatever module they are asked of.
    """
    tree = parse_line(words)
    node = (
        tree.body[0].value
        if isinstance(tree, ast.Module) and tree.body and isinstance(tree.body[0], ast.Expr)
        else None
    )
    return _of_node(node, around) if node is not None else None


def _of_node(node: ast.expr, around: Mapping[str, Value]) -> Value | None:
    written = ast.unparse(node)
    if (known := around.get(written)) is not None:
        return known
    match node:
        case ast.Constant(value=None | bool() | int() | float() | str() as plain):
            return read_value(repr(plain))
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as plain)):
            return read_value(repr(-plain))
        case ast.Tuple(elts=parts) | ast.List(elts=parts) if not any(isinstance(p, ast.Starred) for p in parts):
            found = tuple(value for p in parts if (value := _of_node(p, around)) is not None)
            name = "list" if isinstance(node, ast.List) else "tuple"
            return Value(kind="sequence", name=name, length=len(parts), items=found, whole=len(found) == len(parts))
        case ast.Call(args=[], keywords=[]):
            return around.get(f"__{_last(node.func).removeprefix('get_')}__")
        case ast.BinOp(left=ast.List() as left, op=ast.Mult(), right=right):
            one, times = _of_node(left, around), _of_node(right, around)
            return _repeat(one, times.plain) if one is not None and times is not None else None
    asked = _WORLD.sub(lambda found: f"__{found['what']}__", written)
    tree = parse_line(asked)
    if tree is None or not all(_is_plain(n, around) for n in ast.walk(tree)):
        return None
    try:
        return read_value(repr(value_of(asked, Scope(around))))
    except (UnknownTermError, DemandError):
        return None


def _is_plain(node: ast.AST, around: Mapping[str, Value]) -> bool:
    """True for what means the same in a program as in the language of demands."""
    if isinstance(node, ast.Attribute):
        return node.attr in {"shape", "ndim"} or ast.unparse(node) in around
    return not isinstance(node, ast.Call) or ast.unparse(node.func) == "len"


def _repeat(one: Value, times: object) -> Value | None:
    if not isinstance(times, int) or not 0 <= times <= _MAX_VALUES or one.length is None:
        return None
    same = one.length == 1 and one.whole
    items = one.items if same else one.items * times
    return Value(kind="sequence", name="list", length=one.length * times, items=items, whole=one.whole and bool(times))


def parse_line(code: str) -> ast.AST | None:
    """Return the tree of one line of a program; None if it is only part of a statement."""
    bare = code.strip()
    if bare.startswith(("elif ", "elif(")):
        bare = bare[2:]
    for text in (bare, f"{bare} pass" if bare.endswith(":") else ""):
        try:
            return ast.parse(text) if text else None
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            continue
    return None


def tree_of(place: Place) -> ast.AST | None:
    """Return the tree of a place's line; where that is only part of a statement, that of the marked expression."""
    tree = parse_line(place.code)
    begin, end = place.mark
    if tree is not None or not place.code.isascii() or not begin < end:
        return tree
    part = parse_line(place.code[begin:end])
    for node in ast.walk(part) if part is not None else ():
        if isinstance(node, ast.expr | ast.keyword):
            node.col_offset += begin
            node.end_col_offset = (node.end_col_offset or 0) + begin
    return part


def _add_members(values: dict[str, Value], texts: dict[str, str]) -> None:
    """Add the number of ranks of the call's group: the world's unless the call names another group."""
    group, world = values.get("group"), values.get("world_size")
    if group is not None and group.length:
        values["members"], texts["members"] = Value(kind="number", plain=group.length), str(group.length)
    elif group is not None and group.kind == "none" and world is not None:
        values["members"], texts["members"] = world, texts.get("world_size", "")


def library_call(place: Place | None) -> ast.Call | None:
    """Return the first call of a line of the library, if it is that of a function: a method may have any meaning."""
    tree = parse_line(place.code) if place is not None else None
    found = next((n for n in ast.walk(tree) if isinstance(n, ast.Call)), None) if tree is not None else None
    return found if found is not None and ast.unparse(found.func).rpartition(".")[0] in _MODULES else None


def _call_of(account: Account, api: str) -> ast.expr | None:
    """Return the expression of the user's line that made the call."""
    place = account.place
    tree = tree_of(place) if place is not None else None
    if place is None or tree is None:
        return None
    shift = 2 if place.code.startswith("elif") else 0
    nodes = [n for n in ast.walk(tree) if isinstance(n, ast.Call | ast.BinOp)]
    marked = [n for n in nodes if (n.col_offset + shift, (n.end_col_offset or 0) + shift) == tuple(place.mark)]
    calls = [n for n in nodes if isinstance(n, ast.Call)]
    named = [n for n in calls if _last(n.func) in {short_name(api), api.rpartition(".")[2]}]
    if len(marked) == 1:
        return marked[0]
    if len(named) == 1:
        return named[0]
    return calls[0] if len(calls) == 1 and not named else None


def calls_object(account: Account) -> bool:
    """True if the user's line calls an object of the class that the API is, as its lower-case name tells."""
    node = _call_of(account, account.refusal.api) if account.refusal is not None else None
    return isinstance(node, ast.Call) and _last(node.func)[:1].islower()


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _bind(node: ast.expr | None, code: str, order: Sequence[str], api: str) -> tuple[dict[str, tuple[str, Span]], str]:
    """Return parameter -> (the user's expression, its place), and the name before the last dot of what was called."""
    shift = 2 if code.startswith("elif") else 0
    shown = code[shift:]

    def words(part: ast.expr) -> tuple[str, Span]:
        begin, end = part.col_offset, part.end_col_offset or part.col_offset
        text = shown.encode()[begin:end].decode(errors="replace")  # columns of a tree count bytes
        return text, (begin + shift, end + shift)

    if isinstance(node, ast.BinOp):
        return dict(zip(order, (words(node.left), words(node.right)), strict=False)), ""
    if not isinstance(node, ast.Call):
        return {}, ""
    receiver = node.func.value if isinstance(node.func, ast.Attribute) else None
    found: dict[str, tuple[str, Span]] = {}
    names = list(order)
    of_object = len(api.split(".")) > 1 and api.split(".")[-2][:1].isupper() and receiver is not None
    if of_object and receiver is not None:
        found["self"] = words(receiver)
        names = names[1:] if names[:1] == ["self"] else names
        if api.startswith("torch.Tensor.") and names[:1] in (["input"], ["tensor"]):
            found[names.pop(0)] = found["self"]
    elif api.rpartition(".")[2][:1].isupper() and _last(node.func) != api.rpartition(".")[2]:
        found["self"] = words(node.func)  # an object that is called
    for index, part in enumerate(node.args):
        if isinstance(part, ast.Starred) or index >= len(names):
            break
        if names[index].startswith("*"):
            rest = node.args[index:]
            begin, end = words(rest[0])[1][0], words(rest[-1])[1][1]
            inner = shown.encode()[begin - shift : end - shift].decode(errors="replace")
            found[names[index][1:]] = (inner, (begin, end))
            break
        found[names[index]] = words(part)
    found.update((keyword.arg, words(keyword.value)) for keyword in node.keywords if keyword.arg)
    return found, ast.unparse(receiver) if receiver is not None else ""


def _normal(test: str) -> str:
    tree = parse_line(test)
    return ast.unparse(tree) if tree is not None else " ".join(test.split())
