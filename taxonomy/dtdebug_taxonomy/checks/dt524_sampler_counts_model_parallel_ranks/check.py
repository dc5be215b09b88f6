"""Samplers that split the data between all ranks although some of them share a batch."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.names import SAMPLER
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.ranks import is_size, rank

_MAKES = {"initialize_model_parallel", "init_model_parallel", "initialize_megatron", "parallelize_module"}
_MESH = ("torch.distributed.device_mesh.init_device_mesh", "torch.distributed.init_device_mesh")
_TOGETHER = re.compile(r"(?i)(tp|cp|sp|pp|tensor|context|sequence|pipe|pipeline|ulysses|ring)(_?parallel)?")
_ASKS = re.compile(r"(?i)parallel|(^|\W|_)(tp|cp|sp|pp|dp)(_|\W|$)|mesh|mpu")


def check(code: Code) -> Iterator[Hit]:
    """Report the sampler."""
    samplers = code.calls(SAMPLER)
    if not samplers or code.role == "test" or not _works_together(code):
        return
    for call in samplers:
        size, own = code.argument(call, "num_replicas", 1), code.argument(call, "rank", 2)
        if code.has_unpacking(call) or not _of_all(code, size, own) or _tests_groups(code, call):
            continue
        if _of_one_dimension(code, size) or _of_one_dimension(code, own):
            continue
        yield Hit(
            code.span(call),
            "This splits the data between all ranks, but here ranks of one tensor, context or pipeline group work on "
            "one batch together: they get different samples. Count the data-parallel ranks only.",
        )


def _works_together(code: Code) -> bool:
    """True if groups of ranks that share a batch are created here."""
    if any(
        code.name(c.func).rpartition(".")[2] in _MAKES or getattr(c.func, "attr", "") in _MAKES
        for c in code.nodes(ast.Call)
    ):
        return True
    for call in code.calls(*_MESH):
        names = code.argument(call, "mesh_dim_names")
        parts = names.elts if isinstance(names, ast.Tuple | ast.List) else []
        if any(_TOGETHER.fullmatch(str(code.constant(p))) for p in parts):
            return True
    return False


def _of_all(code: Code, size: ast.expr | None, own: ast.expr | None) -> bool:
    """True if a sampler counts all ranks: by default, or by the world size and the global rank."""
    if size is None and own is None:
        return True
    return size is not None and own is not None and is_size(code, size) and rank(code, own) == "global"


def _of_one_dimension(code: Code, node: ast.expr | None) -> bool:
    """True if a number may be for one dimension of a mesh: `mesh.size(0)`, `mesh.get_local_rank("dp")`."""
    return any(
        isinstance(v, ast.Call) and getattr(v.func, "attr", "") in {"size", "get_local_rank"} and bool(v.args)
        for v in code.values(node)
    )


def _tests_groups(code: Code, call: ast.Call) -> bool:
    """True if a condition around the sampler tests for such groups."""
    tests = (up.test for up in code.ancestors(call) if isinstance(up, ast.If | ast.IfExp))
    return any(_ASKS.search(code.source_of(test)) for test in tests)
