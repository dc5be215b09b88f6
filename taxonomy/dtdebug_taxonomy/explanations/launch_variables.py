"""Values from a variable that another launcher sets."""

from __future__ import annotations

import ast
from collections.abc import Container

from dtdebug_taxonomy.explanations.account_words import replace_expression
from dtdebug_taxonomy.explanations.faults import Fault
from dtdebug_taxonomy.inference.account_call import parse_line
from dtdebug_taxonomy.model.launch_variables import name_elsewhere


def of_unset_variable(fault: Fault, environment: Container[str]) -> Fault | None:
    """Return a fault whose value came from a variable of another launcher with the variable that this one set."""
    link = fault.link
    tree = parse_line(link.place.code) if link is not None and link.how == "environment" else None
    for node in ast.walk(tree) if tree is not None else ():
        name = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
        other = name_elsewhere(name, environment) if name not in environment else ""
        if link is None or not other:
            continue
        span = (node.col_offset, node.end_col_offset or 0)  # type: ignore[attr-defined]
        quote = link.place.code[span[0] : span[0] + 1]
        edit = replace_expression(link.place, span, f"{quote}{other}{quote}")
        fix = f"ask for {other}: the launcher of this job sets no {name}."
        return fault._replace(fix=fix, edit=edit, at=link.place)
    return None
