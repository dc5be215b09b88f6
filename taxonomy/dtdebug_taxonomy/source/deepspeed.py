"""DeepSpeed configurations in any form: files, sections of YAML, dicts of a program, texts in scripts."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.source.config.document import Config
from dtdebug_taxonomy.source.config.json_reader import JsonReader
from dtdebug_taxonomy.source.config.tree import UNKNOWN, KeyValue, Node, Unknown
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.environment import inner
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.shell.script import Script
from dtdebug_taxonomy.source.source import Source
from dtdebug_taxonomy.source.text import Span

NAME = re.compile(r"deepspeed|(^|[._-])(ds|zero)([._-]|\d|config)", re.IGNORECASE)
"""Names of files with such a configuration."""
WORDS = ("zero_optimi", "train_micro_batch_size_per_gpu", "train_batch_size", "zero_force_ds_cpu_optimizer")
"""Strings, one of which is in any text with a DeepSpeed configuration."""
_STRONG = frozenset({"zero_optimization", "zero_optimisation", "train_micro_batch_size_per_gpu"})
_TYPICAL = frozenset(
    {"train_batch_size", "gradient_accumulation_steps", "fp16", "bf16", "optimizer", "steps_per_print"}
)
_SECTIONS = frozenset({"fp16", "bf16", "optimizer"})
"""Mappings in such a configuration; as a plain value the key is an option of another program."""


def configurations(source: Source) -> Iterator[Node]:
    """Yield the mappings of a source that are DeepSpeed configurations."""
    named = isinstance(source, Config) and NAME.search(source.path.rpartition("/")[2])
    if not named and not any(word in source.text for word in (*WORDS, "deepspeed")):
        return
    if isinstance(source, Config):
        for root in source.roots:
            yield from [root] if named and source.language == "json" and root.entries else _outermost(root, 12)
    elif isinstance(source, Script):
        for heredoc in source.heredocs:
            if source.cut(heredoc.span).lstrip().startswith("{"):
                root_of_text = JsonReader(source.text, heredoc.span).read()
                if root_of_text is not None:
                    yield from _outermost(root_of_text, 2)
    elif isinstance(source, Code):
        made_by_call = [c for c in source.calls("dict") if c.keywords]
        literals: list[ast.Dict | ast.Call] = [*source.nodes(ast.Dict), *made_by_call]
        passed = _passed_values(source)
        for node in literals:
            inside = _looks(_keys(source.parent.get(node)))
            if (
                not inside
                and (node in passed or _looks(_keys(node)))
                and (made := _assemble_node(source, node)) is not None
            ):
                yield made


def _passed_values(code: Code) -> set[ast.expr | None]:
    """Return the values passed to DeepSpeed as its configuration."""
    given = [code.argument(c, n) for c in code.calls("deepspeed.initialize") for n in ("config", "config_params")]
    return {value for argument in given if argument is not None for value in code.values(argument)}


def _looks(keys: set[str]) -> bool:
    return bool(keys & _STRONG) or len(keys & _TYPICAL) > 2


def _outermost(node: Node, depth: int) -> Iterator[Node]:
    plain = {k for k, e in node.entries.items() if k in _SECTIONS and not isinstance(e.node.value, dict | Unknown)}
    if _looks(set(node.entries) - plain):
        yield node
    elif depth:
        for child in (*(e.node for e in node.entries.values()), *node.items):
            if child.entries or child.items:
                yield from _outermost(child, depth - 1)


def _keys(node: ast.AST | None) -> set[str]:
    if isinstance(node, ast.keyword):
        return set()
    if isinstance(node, ast.Call):
        return {k.arg for k in node.keywords if k.arg}
    if not isinstance(node, ast.Dict):
        return set()
    found = zip(node.keys, node.values, strict=True)
    return {
        k.value
        for k, v in found
        if isinstance(k, ast.Constant)
        and isinstance(k.value, str)
        and not (k.value in _SECTIONS and isinstance(v, ast.Constant))
    }


def _assemble_node(code: Code, node: ast.Dict | ast.Call) -> Node | None:
    """Return a literal with later changes by the program made unknown; None if it includes anything invisible."""
    made = _tree(code, node, 12)
    up = code.parent.get(node)
    if (None in node.keys) if isinstance(node, ast.Dict) else (code.has_unpacking(node) or node.args):
        return None
    if not isinstance(up, ast.Assign | ast.AnnAssign):
        return made
    names = {dotted_name(t) for t in (up.targets if isinstance(up, ast.Assign) else [up.target])} - {""}
    for call in code.methods("update", "setdefault", "pop"):
        if isinstance(call.func, ast.Attribute) and dotted_name(_root(call.func.value)[0]) in names:
            return None
    for subscript in code.nodes(ast.Subscript):
        root, path = _root(subscript)
        if isinstance(subscript.ctx, ast.Store | ast.Del) and dotted_name(root) in names:
            if not path:
                return None
            made = _without(made, path)
    return made


def _root(node: ast.expr) -> tuple[ast.expr, list[str]]:
    """Return the name below a chain of subscripts, and the keys up to the first that is not constant."""
    keys: list[str] = []
    while isinstance(node, ast.Subscript):
        keys.append(node.slice.value if isinstance(node.slice, ast.Constant) else "")  # type: ignore[arg-type]
        node = node.value
    keys.reverse()
    return node, keys[: keys.index("")] if "" in keys else keys


def _without(node: Node, path: list[str]) -> Node:
    entry = node.entries.get(path[0]) if isinstance(path[0], str) else None
    if entry is None:
        key_span = node.span
        return node._replace(
            value={**node.entries, path[0]: KeyValue(str(path[0]), key_span, Node(key_span, UNKNOWN, key_span))}
        )
    child = _without(entry.node, path[1:]) if len(path) > 1 else entry.node._replace(value=UNKNOWN)
    return node._replace(value={**node.entries, path[0]: entry._replace(node=child)})


def _product(code: Code, node: ast.BinOp) -> int | None:
    """Return the product of whole numbers, as in `4 * ACCUMULATION`."""
    one, other = code.constant(node.left), code.constant(node.right)
    if isinstance(node.op, ast.Mult) and isinstance(one, int) and isinstance(other, int):
        return one * other
    return None


def _tree(code: Code, node: ast.expr, depth: int) -> Node:
    span = code.span(node)
    if isinstance(node, ast.Dict) and depth:
        entries = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                entries[key.value] = KeyValue(key.value, inner(code, key), _tree(code, value, depth - 1))
        return Node(span, entries, span)
    if isinstance(node, ast.Call) and code.name(node.func) == "dict" and not node.args and depth:
        entries = {}
        for keyword in node.keywords:
            if keyword.arg:
                start = code.span(keyword).start
                key_span = Span(start, start + len(keyword.arg))
                entries[keyword.arg] = KeyValue(keyword.arg, key_span, _tree(code, keyword.value, depth - 1))
        return Node(span, entries, span)
    if isinstance(node, ast.List | ast.Tuple) and depth:
        return Node(span, [_tree(code, element, depth - 1) for element in node.elts], span)
    if isinstance(node, ast.Constant):
        return Node(span, node.value, inner(code, node))
    known = _product(code, node) if isinstance(node, ast.BinOp) else code.constant(node)
    return Node(span, UNKNOWN if known is None else known, span)
