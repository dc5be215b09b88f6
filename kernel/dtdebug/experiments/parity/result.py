"""Collects the result of the comparison with one process over a run."""

from __future__ import annotations

from pathlib import Path, PurePath

import msgspec

from dtdebug.experiments.parity.judge import judge, pipelines
from dtdebug.experiments.parity.judge.view import StepView, views
from dtdebug.experiments.parity.record_types import Row
from dtdebug.experiments.repeat import notes
from dtdebug.privacy.sanitize import one_line
from dtdebug_taxonomy.model.rank_ranges import ranges, spell

FOLDER = "parity"
"""Folder of the ranks' notes, below the run's folder."""
_BYTES = 64 << 20
_ROWS: msgspec.json.Decoder[Row] = msgspec.json.Decoder(Row)


def parity_result(run: Path) -> notes.Noted | None:
    """Return the result from the folder of a run, or None if nothing was to be compared."""
    folder = run / FOLDER
    if not folder.is_dir():
        return None
    for left in (*folder.glob("step-*.pt"), *folder.glob("step-*.part")):  # samples of a rank whose step was not met
        left.unlink(missing_ok=True)
    rows = notes.read_rows(folder, _ROWS, _BYTES)
    found = judge(rows)
    shown = tuple(map(notes.shown, found))
    return notes.Noted(violations=shown, note=one_line(_note(rows, agrees=not found), 600))


def _note(rows: list[Row], *, agrees: bool) -> str:
    seen = views(rows)
    failed = next((r.failed for r in rows if r.failed), "")
    if failed:
        return f"parity: ended on a rank: {failed}"
    uncovered = next((r.uncovered for r in rows if r.uncovered), "")
    if uncovered:
        return f"parity: nothing compared: {uncovered} is not covered"
    pipeline = pipelines.note_of(rows, agrees=agrees)
    if pipeline:
        return pipeline
    if not rows:
        return "parity: nothing compared: no rank of a training was seen, or the program ended before the chosen step"
    if not seen:
        empty = any(r.empty for r in rows)
        why = "the optimizer holds no parameter of a module that was called" if empty else (
            "no optimizer step was seen: none was taken before the program ended, or not by an optimizer of torch"
        )  # fmt: skip
        return f"parity: nothing compared: {why}"
    if max(len(v.everyone) for v in seen) < 2:
        return "parity: nothing compared: one rank trains, and there is nothing to compare it with"
    told = [v for v in seen if v.compared or (v.result is not None and v.result.layers is not None)]
    if not told:
        return "parity: nothing compared: no gradient passed a module that was called, or none was finite"
    steps = ranges(tuple(v.step for v in told), 8)
    text = f"parity: step{'s' * (len(told) > 1)} {steps} of {spell(told[0].everyone, 8)}"
    shared = [v.result.layers for v in told if v.result is not None and v.result.layers is not None]
    if agrees and shared:
        known = [one.agree for one in shared if one.agree is not None]
        if any(one.drawn for one in shared):
            text += ": not compared, the model draws random numbers, which sharded layers draw otherwise"
        elif any(one.output or one.gradients or any(row[1] != "summed" for row in one.apart) for one in shared):
            text += ": what differs from whole layers could not be told from what the model communicates by hand"
        elif known:
            count, worst = max(n for n, _ in known), max(off for _, off in known)
            text += f" are those of one process with whole layers: {count} gradients agree to {worst:.1e}"
    elif agrees:
        worst = max(
            (c.after.off / c.size for v in told for c in v.compared if c.size and c.after.state == "mean"), default=0.0
        )
        limit = min((c.tolerance for v in told for c in v.compared if c.tolerance), default=0.0)
        text += (
            f" are those of one process: {max(len(v.compared) for v in told)} gradients agree to {worst:.1e} "
            f"(tolerance {limit:.1e}, measured)"
        )
    return text + "".join(f"; {limit}" for limit in _limits(told))


def _limits(seen: list[StepView]) -> list[str]:
    """Return what was not compared, and what one process does otherwise by design."""
    found = []
    again = [v.result.again for v in seen if v.result is not None and v.result.again is not None]
    random = next((a.random for a in again if a.random is not None), None)
    if random is not None:
        first = f", first in `{random.first[0] or 'the model'}`" if random.first else ""
        found.append(f"not deterministic: two equal recomputations differ in {random.parameter}{first}")
    whole = next((a for a in again if a.left_out == "whole"), None)
    if whole is not None:
        found.append(f"the model can't be run with whole layers ({whole.call}), so only the reduction was compared")
    elif any(a.left_out == "communicates" for a in again):
        found.append("the model communicates in its forward pass, so only the reduction was compared")
    elif any(a.left_out == "weights" for a in again):
        found.append("some sharded weights were never whole, so only the reduction was compared")
    elif any(a.left_out for a in again):
        found.append("the inputs can't be passed on, so only the reduction was compared")
    if any(v.result is not None and v.result.unrepeated for v in seen):
        found.append("the model is too large for one process, so only the reduction was compared")
    norms = sorted({k for v in seen for f in v.facts.values() for k in f.batchnorm if "Sync" not in k})
    if norms:
        found.append(f"{norms[0]} takes its statistics from each rank alone, one process would from all samples")
    lead = seen[0].lead
    if lead.exchanged:
        name, file, line = lead.exchanged
        found.append(f"values of other ranks ({name}, {PurePath(str(file)).name}:{line}) were taken as they came")
    if lead.known < lead.graded:
        found.append(f"{lead.graded - lead.known} parameters with a gradient are used outside of modules: not compared")
    return found
