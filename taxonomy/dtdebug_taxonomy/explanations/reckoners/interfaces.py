"""Listed network interfaces against those that NCCL or gloo is told to use. Unit: interfaces of a host.

Rule: NCCL_SOCKET_IFNAME is a list of prefixes; `^` excludes, `=` wants the whole name (NCCL, "Environment Variables",
https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-socket-ifname). `lo` reaches its own host only.
"""

from __future__ import annotations

from collections.abc import Iterator

from dtdebug_taxonomy.explanations.context import Context
from dtdebug_taxonomy.explanations.model import Explanation, explanation_for, reason_of_figures
from dtdebug_taxonomy.text.lazy_re import lazy_re

_LISTED = lazy_re(
    r"(?m)^[>|\s]{0,8}(?:\d{1,3}: )?(?P<name>[a-z][\w.-]{1,15})(?:@\w{1,15})?: (?:<[A-Z_,-]{2,120}>|flags=\d{1,5}<)"
    r"(?P<rest>.{0,300}(?:\n(?:[ \t]|> ).{0,300}){0,8})"
)
"""An interface as `ip addr` and `ifconfig` show it."""
_ADDRESS = lazy_re(r"\binet (?:addr:)?(?P<ip>\d{1,3}(?:\.\d{1,3}){3})")
_CHOSEN = lazy_re(
    r"(?<![\w])(?P<name>(?:NCCL|GLOO|TP)_SOCKET_IFNAME)[`'\"\]]{0,3} ?[=:] ?[`'\"]?(?P<value>\^?=?[a-z][\w.,-]{1,60})"
)
_SEVERAL = lazy_re(
    r"(?i)\b(?:[2-9]|\d\d|two|three|four|several|multiple|multi|both|all)[ -](?:nodes?|machines?|hosts?|servers?)\b"
    r"|--nnodes[ =](?!1\b)|--num_machines[ =](?!1\b)|\bnode ?(?:_?rank)?[ =:]1\b"
)
_MOST = 6
"""Names that are shown."""


def explain(context: Context) -> Iterator[Explanation]:
    """Yield that the chosen interface is not among the listed ones, or reaches no other host."""
    text = context.incident.texts
    found = _CHOSEN.search(text)
    if found is None or found["value"].startswith("^"):
        return
    wanted = found["value"].strip("=,.-").split(",")
    listed = {m["name"]: m for m in _LISTED.finditer(text)}
    exact = found["value"].startswith("=")
    missing = listed.keys() > {"lo"} and not any(
        n == w or (not exact and n.startswith(w)) for n in listed for w in wanted
    )
    if not missing and not (wanted == ["lo"] and _SEVERAL.search(text)):
        return
    usable = [n for n, m in listed.items() if n != "lo" and not n.startswith(("docker", "veth", "br-", "virbr"))]
    named = next((n for n in usable if (at := _ADDRESS.search(listed[n]["rest"])) and _is_master(text, at["ip"])), "")
    other = named or (usable[0] if len(usable) == 1 else "")
    variable = found["name"]
    yield explanation_for(
        context.symptom,
        f"{variable}={found['value']} names none of the listed interfaces ({', '.join(list(listed)[:_MOST])})"
        if missing
        else f"{variable}=lo reaches this host only, and the job runs on several",
        "An interface that does not exist, or that leads to no other host, connects no ranks.",
        f"export {variable}={other} on that host" if other else
        f"Set {variable} on each host to an interface of its own that joins the hosts (`ip -br addr`), or unset it",
        0.6,
        reason_of_figures(context.incident, "chosen-interface-joins-no-hosts", found, "You set it so.", 2.0),
        pattern="fix communication configuration",
    )  # fmt: skip


def _is_master(text: str, ip: str) -> bool:
    return f"MASTER_ADDR={ip}" in text or f"master_addr={ip}" in text or f"master_addr {ip}" in text
