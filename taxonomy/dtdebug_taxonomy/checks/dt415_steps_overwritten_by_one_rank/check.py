"""Loops that step on every rank and then broadcast one rank's weights, without exchanging gradients."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.fixing import deeper, indent_of, statement_lines, written_name
from dtdebug_taxonomy.checks.shared.names import DIST
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.guards import guards
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.text import Span

_EXCHANGES = re.compile(r"reduce|gather|all_to_all|DistributedDataParallel|\bDDP\b|FSDP|fully_shard|average_|horovod")


def check(code: Code) -> Iterator[Hit]:
    """Report the broadcast."""
    if _EXCHANGES.search(code.text):
        return
    for call in code.calls(DIST + "broadcast"):
        loop = code.parent.get(code.statement(call))
        name = dotted_name(code.argument(call, "tensor", 0)).removesuffix(".data")
        if not isinstance(loop, ast.For) or not isinstance(loop.target, ast.Name) or loop.target.id != name:
            continue
        block = code.block(loop)
        before = block[: block.index(loop)] if ".parameters()" in code.source_of(loop.iter) else []
        step = next((s for s in reversed(before) if _calls(code, s, "step") and isinstance(s, ast.Expr)), None)
        if step is None or not any(_calls(code, s, "backward") for s in before[: before.index(step)]):
            continue
        if guards(code).around(step) or code.argument(call, "group", 2) is not None or not _repeats(code, loop):
            continue
        yield Hit(
            code.span(call),
            "All ranks step, and then take the weights of one: what the others have learnt from their samples is "
            "thrown away. Average the gradients before the step.",
            _fix(code, loop, step, name),
        )


def _repeats(code: Code, node: ast.AST) -> bool:
    return any(isinstance(a, ast.For | ast.While) for a in code.ancestors(node))


def _calls(code: Code, statement: ast.stmt, name: str) -> bool:
    return any(isinstance(c.func, ast.Attribute) and c.func.attr == name for c in code.inside(statement, ast.Call))


def _fix(code: Code, loop: ast.For, step: ast.stmt, name: str) -> Fix | None:
    """Return a fix that averages gradients instead of broadcasting, if the loop does nothing else."""
    lines, before = statement_lines(code, loop), statement_lines(code, step)
    if lines is None or before is None or len(loop.body) != 1 or loop.orelse:
        return None
    reduce, imports = written_name(code, DIST + "all_reduce")
    world, more = written_name(code, DIST + "get_world_size")
    if imports or more:
        return None
    indent = indent_of(code, step)
    once = deeper(indent)
    twice = deeper(once)
    text = (
        f"{indent}for {name} in {code.source_of(loop.iter)}:\n{once}if {name}.grad is not None:\n"
        f"{twice}{reduce}({name}.grad)\n{twice}{name}.grad /= {world}()\n"
    )
    return Fix("Average the gradients instead", (Edit(Span(before.start, before.start), text), Edit(lines, "")))
