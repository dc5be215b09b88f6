"""Suggests fixes for what is responsible: in words, and as a patch of the user's file if a call decides it."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from pathlib import Path

from dtdebug.experiments.isolate.recording_diff import NOT_SET
from dtdebug.experiments.isolate.run_types import ENVIRONMENT, NODES, RANKS, VERSION
from dtdebug.experiments.isolate.search_state import ResponsibleFactor, SearchState
from dtdebug.privacy.sanitize import clean
from dtdebug.storage import state_dir
from dtdebug_taxonomy.checks.run.proving import format_patch
from dtdebug_taxonomy.knowledge.factors import Factor
from dtdebug_taxonomy.model.effort import Effort
from dtdebug_taxonomy.model.isolation import IsolationResult, ResponsiblePart
from dtdebug_taxonomy.source.text import Text

_LIMIT, _SHOWN = 1 << 20, 4_000
_REFUSED = {"num_workers": ("persistent_workers", "prefetch_factor", "timeout", "multiprocessing_context")}
"""Arguments that a loader without workers rejects."""


def patch(path: Path, line: int, calls: Sequence[str], given: Mapping[str, str]) -> str:
    """Return the patch that gives these arguments to the call on that line, or "" if that is ambiguous.

    `calls`: names of the called function; aliases under which the file imports it count, too.
    """
    try:
        before = state_dir.read_start(path, _LIMIT).decode()
        tree = ast.parse(before)
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
        return ""
    names = {*calls, *(alias.asname for alias in _import_aliases(tree) if alias.asname and alias.name in calls)}
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _is_at(node, line, names)]
    if len(found) != 1 or any(keyword.arg is None for keyword in found[0].keywords):
        return ""  # several, or **options that may contain the same name
    after = _set_arguments(before, found[0], given)
    try:
        ast.parse(after)
    except SyntaxError:
        return ""
    diff = format_patch(path.name, before, after)
    return clean(diff) if len(diff) <= _SHOWN else ""


def _import_aliases(tree: ast.Module) -> list[ast.alias]:
    return [alias for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names]


def _is_at(node: ast.Call, line: int, names: set[str]) -> bool:
    called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return called in names and node.lineno <= line <= (node.end_lineno or node.lineno)


def _set_arguments(text: str, call: ast.Call, given: Mapping[str, str]) -> str:
    """Return the text with these keyword arguments in that call: present ones replaced, others appended."""
    places = Text(text)

    def begin(node: ast.expr | ast.keyword) -> int:
        return places.offset_of_byte(node.lineno, node.col_offset)

    def end(node: ast.expr | ast.keyword) -> int:
        return places.offset_of_byte(node.end_lineno or node.lineno, node.end_col_offset or 0)

    edits = []
    present = {keyword.arg: keyword for keyword in call.keywords}
    for name, value in given.items():
        if name in present:
            old = present[name].value
            edits.append((begin(old), end(old), value))
        for refused in _REFUSED.get(name, ()):
            if refused in present:
                start = len(text[: begin(present[refused])].rstrip().removesuffix(","))
                edits.append((start, end(present[refused]), ""))
    last: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    after = max(map(end, last), default=-1)
    new = ", ".join(f"{name}={value}" for name, value in given.items() if name not in present)
    if new and after < 0:
        edits.append((end(call) - 1, end(call) - 1, new))
    elif new:
        edits.append((after, after, f", {new}"))
    for start, stop, value in sorted(edits, reverse=True):
        text = text[:start] + value + text[stop:]
    return text


_PLACES = 8


def remedy(found: SearchState, name: str, factor: Factor | None, value: str) -> tuple[str, str]:
    """Return (fix, patch), each "" if unknown."""
    if factor is not None:
        is_slow = found.failure is not None and found.failure.how == "slow"
        return (is_slow and factor.slow) or factor.fix, _patch(found, factor)
    if name.startswith(ENVIRONMENT):
        variable = name.removeprefix(ENVIRONMENT)
        what = f"Take {variable} out of the environment" if value == NOT_SET else f"Set {variable}={value}"
        return f"{what}, in the shell, its profile, the job's script or image.", ""
    if name.startswith(VERSION):
        return f"`pip install '{name.removeprefix(VERSION)}=={value}'`, until a later release has the fix.", ""
    if name == NODES:
        return (
            "Look at what uses LOCAL_RANK, LOCAL_WORLD_SIZE or a path of the host where the rank of all is meant.",
            "",
        )
    if name == "program":
        return _of_program(found, value), ""
    return "", ""


def _of_program(found: SearchState, place: str) -> str:
    at = f" at {place}" if place else ""
    if found.failure is not None and found.failure.how == "slow":
        return ""
    if found.distributed is False:
        return f"Debug it as a program of one process: it fails with one rank too. Start{at or ' at the first error'}."
    if found.distributed:
        return f"Look at what depends on the rank or on the number of ranks{at}: branches, shares of data, sizes."
    return ""


def _patch(found: SearchState, factor: Factor) -> str:
    places = found.first.at.get(factor.uses[-1], ()) if found.first is not None and factor.calls else ()
    for place in places[:_PLACES]:
        file, _, line = place.rpartition(":")
        if line.isdecimal() and (diff := patch(Path(file), int(line), factor.calls, factor.set)):
            return diff
    return ""


def isolation_result(found: SearchState, factors: dict[str, Factor]) -> IsolationResult:
    """Return the result in the form for a diagnosis."""
    return IsolationResult(
        parts=tuple(_part(r, factors.get(r.factor)) for r in found.responsible),
        means=_went(found),
        sure=found.confirmed,
        ruled_out=tuple(f"Measured: {clean('; '.join(rows))}." for rows in _ruled_out(found) if rows),
    )


def _part(r: ResponsibleFactor, factor: Factor | None) -> ResponsiblePart:
    effort: Effort = "edit"
    pattern = factor.pattern if factor is not None else "fix behavior logic"
    if r.factor.startswith(ENVIRONMENT):
        pattern, effort = "fix communication configuration", "restart"
    elif r.factor.startswith(VERSION):
        pattern, effort = "fix dependency version", "reinstall"
    return ResponsiblePart(
        factor=r.factor, title=clean(r.text), fix=clean(r.fix), effort=effort, pattern=pattern, diff=r.diff
    )


def _ruled_out(found: SearchState) -> tuple[list[str], list[str]]:
    ranks = ["one rank fails too: distribution is not it"] if found.distributed is False else []
    return ranks, list(dict.fromkeys(found.ruled_out))


def _went(found: SearchState) -> str:
    """Return how many runs with and without the responsible change failed."""
    if found.failure is not None and found.failure.how == "slow":
        return found.measured
    blamed = {r.factor for r in found.responsible}
    named = blamed - {RANKS, NODES, "program", "several"}
    counts = blamed & {RANKS, NODES}  # fewer of them are not a run of the same kind
    as_before, _, _, not_so = found.words
    without = [run for run in found.runs if run.outcome != "other" and not (named | counts) & set(run.factors)]
    failing = sum(run.outcome == "same" for run in without)
    how = "Without that change" if named else "As it is"
    told = [f"{how} it {'is slow' if as_before == 'slow' else as_before} in {failing} of {len(without)} runs."]
    changed = [run for run in found.runs if named and named <= set(run.factors) and run.outcome != "other"]
    fewer = [run for run in found.runs if set(run.factors) == {RANKS} and run.factors[RANKS] == "1"]
    hosts = [run for run in found.runs if set(run.factors) == {NODES}]
    rows = (("the change", changed, True), ("one rank", fewer, RANKS in blamed), ("one host", hosts, NODES in blamed))
    for how, runs, tells in rows:
        good = sum(run.outcome in ("ok", "timeout") for run in runs)
        if runs and tells:
            told.append(f"With {how} it {not_so} in {good} of {len(runs)}.")
    return " ".join(told)
