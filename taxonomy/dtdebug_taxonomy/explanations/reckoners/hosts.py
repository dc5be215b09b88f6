"""Hosts that a job is told to wait for, and processes for each, against what is stated of the machines. Unit: hosts.

Rules: a job comes up when all of its nodes have joined (`--nnodes`, `num_nodes`; PyTorch, "torchrun",
https://docs.pytorch.org/docs/stable/elastic/run.html); a host has no device for a process whose local rank is its
number of devices or more.
"""

from __future__ import annotations

from collections.abc import Iterator

from dtdebug_taxonomy.explanations.context import Context
from dtdebug_taxonomy.explanations.model import Explanation, explanation_for, reason_of_figures
from dtdebug_taxonomy.text.lazy_re import lazy_re
from dtdebug_taxonomy.text.number_words import NUMBER, read_number

_WAITED_FOR = lazy_re(
    r"(?:^|[\s`\"'({])(?:--nnodes[ =]|--num_machines[ =]|\+{0,2}(?:\w{1,30}\.){0,3}(?:num_nodes|nnodes|num_machines)"
    r"[\"']?\s?[=:]\s?)(?P<n>\d{1,4})\b(?!:)"
)
"""As an option, a keyword or an override of a configuration (`trainer.num_nodes=2`)."""
_ONE_HOST = lazy_re(
    r"(?i)\b(?:only|just) (?:have |use |got )?(?:the |a |this )?(?:one|1|single|a single) (?:machine|node|host"
    r"|server|box"
    r"|workstation)\b|\b(?:have|using|use|on) (?:only |just )?(?:a single|one|1) (?:machine|node|host|server|box"
    r"|workstation)\b|\bmy (?:laptop|workstation|desktop)\b"
)
_STARTED = lazy_re(r"(?:^|[\s`])(?:mpirun|mpiexec|horovodrun)\b[^\n`]{0,80}? -(?:np|n) (?P<n>\d{1,5})\b")
_HOSTS = lazy_re(
    rf"(?i)(?<![\w.-])(?P<hosts>{NUMBER}) (?:nodes|machines|hosts|servers)\b[^.\n]{{0,24}}?\b(?P<each>{NUMBER})"
    r" ?x? ?(?:\w{2,8} )?(?:gpus|cards|devices)\b"
)
_ORDINAL = lazy_re(r"(?i)\binvalid device ordinal\b")
_WAITS = frozenset({"B.2", "C.4", "D.2.1", "B.1", "D.2.2"})
"""Symptoms of a job that does not come up."""
_EVIDENCE = "hosts-and-processes-disagree"


def explain(context: Context) -> Iterator[Explanation]:
    """Yield that a job waits for more nodes than there are, or starts more processes on a host than it has devices."""
    everything = context.incident.texts
    waited, one = _WAITED_FOR.search(everything), _ONE_HOST.search(context.incident.prose.text)
    if waited is not None and one is not None and int(waited["n"]) > 1 and context.symptom in _WAITS:
        yield explanation_for(
            "B.2",
            f"The job waits for {waited['n']} nodes, and there is one machine",
            "The set-up ends only when every node has joined; nothing is started on the others.",
            f"Make `{' '.join(waited[0].split()).strip('`({')}` 1, or start the job on each node.",
            0.7,
            reason_of_figures(context.incident, _EVIDENCE, waited),
            pattern="fix communication configuration",
        )
    yield from _of_processes(context)


def _of_processes(context: Context) -> Iterator[Explanation]:
    text = context.incident.texts
    started, hosts = _STARTED.search(text), _HOSTS.search(text)
    if started is None or hosts is None or not _ORDINAL.search(text):
        return
    count, nodes, each = int(started["n"]), read_number(hosts["hosts"]), read_number(hosts["each"])
    here = -(-count // nodes) if nodes else 0
    if not 0 < each < here:
        return
    yield explanation_for(
        "C.5",
        f"{count} processes on {nodes} hosts are {here} on each, and a host has {each} devices",
        "The processes above that number get a device that does not exist.",
        f"Start {nodes * each} (`-np {nodes * each}`), {each} on each host.",
        0.7,
        reason_of_figures(context.incident, _EVIDENCE, hosts),
        pattern="fix device assignment",
    )
