"""Old names of torch's variables that looked like NCCL's own."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.knowledge import facts
from dtdebug_taxonomy.source.source import Source

_OLD_TORCH = re.compile(r"\btorch[ \t]*==[ \t]*(0|1|2\.[01])\b|pytorch/pytorch:(0|1|2\.[01])\b")


def check(source: Source) -> Iterator[Hit]:
    """Report an old name that is set, unless the new one is set too or the file requests an older torch."""
    renamed = facts.torch_env().renamed
    here = {v.name for v in source.variables}
    read = {v.name for v in source.variables if not v.is_set}
    for variable in source.variables:
        row = renamed.get(variable.name)
        if row is None or not row.since or not variable.is_set or row.new in here or _OLD_TORCH.search(source.text):
            continue
        yield Hit(
            variable.span,
            f"Since torch {row.since} this is {row.new}: the old name still works but warns on every "
            "rank, and is not an NCCL variable.",
            None if variable.name in read else Fix(f"Write {row.new}", (Edit(variable.span, row.new),)),
        )
