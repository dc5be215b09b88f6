"""Device meshes for more ranks than the command starts."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from math import prod

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.programs import number_of, processes
from dtdebug_taxonomy.source.shell.script import Script
from dtdebug_taxonomy.source.started_programs import started_programs

_MESHES = ("torch.distributed.device_mesh.init_device_mesh", "torch.distributed.init_device_mesh")


def check(script: Script) -> Iterator[Hit]:
    """Report the launcher."""
    for start in started_programs(script):
        code, ranks = start.code, processes(script, start)
        if code is None or start.launch is None or ranks is None:
            continue
        for call in code.calls(*_MESHES):
            shape = code.argument(call, "mesh_shape", 1)
            if isinstance(shape, ast.Name):
                values = code.values(shape)
                shape = values[0] if len(values) == 1 else None
            if not isinstance(shape, ast.Tuple | ast.List):
                continue
            sizes = [number_of(code, start, script, e) for e in shape.elts]
            known = [s for s in sizes if s is not None and s > 0]
            if len(known) < len(sizes) or prod(known) <= ranks:
                continue
            line = code.text.place(code.span(call).start).line
            words = " x ".join(map(str, known))
            yield Hit(
                start.launch.place,
                f"This starts {ranks} rank{'s' * (ranks > 1)}, and {start.name} asks for a "
                f"mesh of {words} = {prod(known)} (line {line}): making it fails on every rank.",
            )
            break
