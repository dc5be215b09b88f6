"""Lightning validation metrics that a callback monitors and nothing averages over the ranks."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Fix, Hit
from dtdebug_taxonomy.checks.shared.arguments import add, keyword
from dtdebug_taxonomy.checks.shared.lightning import logged_names, many_devices, watched_names
from dtdebug_taxonomy.checks.shared.stepping import agrees
from dtdebug_taxonomy.source.python.code import Code

_STEPS = re.compile(r"(validation|test)_step|on_(validation|test)_epoch_end|(validation|test)_epoch_end")
_TEMPLATE = re.compile(r"\{([A-Za-z_][\w/]*)(?::[^}]*)?\}")


def check(code: Code) -> Iterator[Hit]:
    """Report the call that logs the metric."""
    if "torchmetrics" in code.text or not many_devices(code):
        return
    watched = watched_names(code) | _in_file_names(code)
    agreeing = {code.function(c) for c in code.nodes(ast.Call) if watched and agrees(code, c)}
    for call in code.methods("log", "log_dict") if watched else ():
        function = code.function(call)
        if function is None or not _STEPS.fullmatch(function.name) or _has_sync_option(call):
            continue
        names = logged_names(code, call) & watched
        if not names or code.has_unpacking(call) or function in agreeing:
            continue
        yield Hit(
            code.span(call),
            f'Each rank keeps its own "{min(names)}" here, of its part of the data, and a callback chooses or names '
            "checkpoints by it: the value that counts is that of one rank.",
            Fix("Average it over the ranks", (add(code, call, "sync_dist=True"),)),
        )


def _has_sync_option(call: ast.Call) -> bool:
    return keyword(call, "sync_dist") is not None or keyword(call, "rank_zero_only") is not None


def _in_file_names(code: Code) -> set[str]:
    """Return the metrics in the file names of checkpoints: `filename="{epoch}-{val_loss:.2f}"`."""
    found: set[str] = set()
    for call in code.nodes(ast.Call):
        if code.name(call.func).rpartition(".")[2] == "ModelCheckpoint":
            name = code.constant(code.argument(call, "filename"))
            found |= set(_TEMPLATE.findall(name)) if isinstance(name, str) else set()
    return found - {"epoch", "step"}
