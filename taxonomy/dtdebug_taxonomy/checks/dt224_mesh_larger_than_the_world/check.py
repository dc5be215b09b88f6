"""Device meshes with the number of all ranks in one dimension and more than one in another."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.ranks import is_size
from dtdebug_taxonomy.source.text import Span

_MESH = "torch.distributed.device_mesh.init_device_mesh"


def check(code: Code) -> Iterator[Hit]:
    """Report the dimension that has the number of all ranks."""
    for call in code.calls(_MESH, "torch.distributed.init_device_mesh"):
        shape = code.argument(call, "mesh_shape", 1)
        if not isinstance(shape, ast.Tuple | ast.List):
            continue
        whole = [e for e in shape.elts if _is_world(code, e)]
        others = [e for e in shape.elts if e not in whole]
        more = [e for e in others if isinstance(n := code.constant(e), int) and n > 1]
        if len(whole) != 1 or not more:
            continue
        taken = " * ".join(code.source_of(e) for e in others if code.constant(e) != 1)
        end = code.span(whole[0]).end
        divisor = f"({taken})" if "*" in taken else taken
        yield Hit(
            code.span(whole[0]),
            f"One dimension has all ranks already, and another one {code.constant(more[0])}: the mesh "
            "asks for more ranks "
            "than there are.",
            Fix("Divide it by the other dimensions", (Edit(Span(end, end), f" // {divisor}"),)),
        )


def _is_world(code: Code, node: ast.expr) -> bool:
    """True if an expression is the number of all ranks."""
    values = [node, *(v for v in code.values(node) if v is not None)]
    return is_size(code, node) and any("world_size" in code.source_of(v).lower() for v in values)
