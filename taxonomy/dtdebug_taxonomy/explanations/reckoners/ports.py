"""A port that is in use against the one that was set. Unit: ports of one host.

Rule: rank 0 listens on MASTER_PORT, or on the port of the address that the program passes (PyTorch, "Distributed
communication package", https://docs.pytorch.org/docs/stable/distributed.html).
"""

from __future__ import annotations

from collections.abc import Iterator

from dtdebug_taxonomy.explanations.context import Context
from dtdebug_taxonomy.explanations.model import Explanation, explanation_for, reason_of_figures
from dtdebug_taxonomy.text.lazy_re import lazy_re

_TAKEN = lazy_re(
    r"(?:\]|0\.0\.0\.0|127\.0\.0\.1|localhost):(?P<a>\d{2,5}) \(errno: 98\b"
    r"|\bport: (?P<b>\d{2,5}),[^\n]{0,60}\bEADDRINUSE\b"
)
_SET = lazy_re(
    r"(?i)(?:\bMASTER_PORT\b[`'\"\]]{0,3}(?: ?[=:] ?| (?:\w{2,9} ){0,4}?)"
    r"|--(?:master[_-]port|main[_-]process[_-]port)[ =]|--rdzv[_-]endpoint[ =][\w.$-]{1,60}:)"
    r"['\"]?(?P<port>\d{4,5})\b"
)


def explain(context: Context) -> Iterator[Explanation]:
    """Yield that the port in use is not the one that was set."""
    taken = _TAKEN.search(context.incident.printed) or _TAKEN.search(context.incident.said)
    chosen = {m["port"]: None for m in _SET.finditer(context.incident.texts)}
    if taken is None or not chosen or (port := taken["a"] or taken["b"]) in chosen:
        return
    yield explanation_for(
        context.symptom,
        f"The port in use is {port}, not the {next(iter(chosen))} that you set: something chooses its own",
        "A port that the program, a library or a second launcher fixes is bound whatever MASTER_PORT says, by each"
        " process that takes itself for rank 0.",
        f"Find where {port} comes from (`grep -rnE '{port}|MASTER_PORT' .`, in the installed package too), and let it"
        " read MASTER_PORT; one launcher for all processes, so that only one is rank 0.",
        0.5,
        reason_of_figures(context.incident, "port-is-not-the-one-set", taken),
    )
