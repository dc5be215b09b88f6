"""Decides whether a failed cell is about distributed training, and diagnoses it."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from dtdebug.process import user_objects
from dtdebug.process.cell_text import compiled_text

if TYPE_CHECKING:
    from dtdebug.notebook.engine_accounts import Body
    from dtdebug.notebook.live_kernel import Live
    from dtdebug.notebook.ranks_seen import RanksSeen
    from dtdebug.storage.last_failure import LastFailure
    from dtdebug_taxonomy.diagnosis.diagnose import Diagnosis
    from dtdebug_taxonomy.model.ranks import Frame
    from dtdebug_taxonomy.model.snapshot import ExceptionInfo, Snapshot

_FRAMEWORKS = ("torch", "tensorflow", "keras", "horovod", "jax", "deepspeed", "mpi4py", "ray", "nbdistributed")
_WORTH_A_LOOK = re.compile(
    r"(?i)torch|nccl|gloo|horovod|\bmpi|deepspeed|megatron|colossal|accelerate|tensorflow|keras|cuda|\brank\b|srun|"
    r"lightning|rendezvous|nvcc|distributed"
)
_OURS = re.compile(r"(?m)(?:^\s*|[!|;&(]\s*|\s-m\s+)dtdebug\s+[a-z-]")
_MOST_BEFORE = 100_000
"""Maximum characters of earlier cells that are read with a failed one."""
_IN = re.compile(r"cell In\[(\d{1,9})\]\Z")
_ROUNDED = 1.0
"""Tolerance in seconds of a file system's modification times."""
_SHELL = re.compile(r"(?m)^\s*%?%(?:sx|system|bash|sh|script)\b|!")


def diagnose_failed_cell(
    exception: BaseException | None,
    *,
    output: str,
    cell: str,
    job: str = "",
    live: Live | None = None,
    shell: Any = None,
) -> tuple[Snapshot, Diagnosis, bool] | None:
    """Return the snapshot and diagnosis of a failed cell, or None if a quick look shows no distributed training.

    The third value is True if editors were notified; `job` names the cell for them. `live` knows the ranks of the cell.
    `shell` names its cells.
    """
    if not (live is not None and live.has_ranks) and not _worth_a_look(exception, output, cell):
        return None
    import msgspec

    from dtdebug.account.printed import with_accounts
    from dtdebug.capture import capture
    from dtdebug.check.stack_files import sourced_snapshot
    from dtdebug.privacy.boundary import diagnose
    from dtdebug.storage import editor_marks
    from dtdebug.storage.last_failure import LastFailure
    from dtdebug_taxonomy.knowledge.loader import load

    snapshot = capture(exception, output=output, cell=cell)
    if snapshot.exception is None:
        snapshot = with_accounts(snapshot)  # of what ranks have printed
    if shell is not None:
        snapshot = _name_cells(snapshot, shell, _inputs(shell)[:-1], exception)
    if live is not None and not issubclass(type(exception), KeyboardInterrupt):
        snapshot = _with_ranks(live, snapshot)
    number = len(_inputs(shell)) - 1 if shell is not None else None
    if live is not None and (store := live.store.cell_fails(exception, number)) is not None:
        snapshot = msgspec.structs.replace(snapshot, open_store=store)
    snapshot = sourced_snapshot(with_accounts(snapshot))
    snapshot = _with_curves(snapshot)
    diagnosis = diagnose(load(), snapshot, unasked=True)
    told = False
    if diagnosis.recognised:
        LastFailure(snapshot=snapshot, diagnosis=diagnosis).save()
        told = bool(job) and editor_marks.keep_failure(snapshot, diagnosis, job)
    return snapshot, diagnosis, told


def hanging_snapshot(shell: Any, seen: RanksSeen) -> Snapshot:
    """Return a snapshot of the running cell with the ranks as they were seen."""
    from dtdebug.check.stack_files import sourced_snapshot
    from dtdebug.live.job.rank_accounts import parting_of
    from dtdebug_taxonomy.model.snapshot import Snapshot

    inputs = _inputs(shell)
    cell = str(inputs[-1]) if inputs else ""
    before, numbers = _before(inputs[:-1], cell)
    return sourced_snapshot(
        Snapshot(
            ranks=seen.ranks,
            verdict=seen.verdict,
            parting=parting_of(seen.ranks, seen.verdict) if seen.verdict is not None else None,
            cell=cell,
            cells=before,
            cell_numbers=numbers if inputs else (),
        )
    )


def last_snapshot(shell: Any) -> Snapshot | None:
    """Return a snapshot of the exception that ended the last failed cell of this process; None if none has failed.

    Its output is gone: it may have failed before `%load_ext dtdebug`.
    """
    exception = sys.__dict__.get("last_value")
    if exception is None or type(exception).__name__ == "UsageError":
        return None
    import msgspec

    from dtdebug.capture import capture
    from dtdebug.check.stack_files import sourced_snapshot

    inputs = _inputs(shell)
    snapshot = _name_cells(capture(exception), shell, ())
    frames = snapshot.exception.frames if snapshot.exception is not None else ()
    cell = next((int(found[1]) for f in frames if (found := _IN.match(f.file))), 0)
    if 0 < cell < len(inputs):
        before, numbers = _before(inputs[:cell], inputs[cell])
        snapshot = msgspec.structs.replace(snapshot, cell=str(inputs[cell]), cells=before, cell_numbers=numbers)
    return sourced_snapshot(snapshot)


def _name_cells(snapshot: Snapshot, shell: Any, inputs: Sequence[Any], raised: BaseException | None = None) -> Snapshot:
    """Return the snapshot with the cells' names in its exception, and with the cells that ran before the failed one."""
    import msgspec

    from dtdebug.notebook.cells import Cells

    names = Cells(shell)
    before, numbers = _before(inputs, snapshot.cell)
    exception = names.rename_cells(snapshot.exception)
    accounts = tuple(map(names.rename_cells, snapshot.accounts))
    if exception is not None and inputs and "ipyparallel" in sys.modules:
        from dtdebug.notebook import engine_accounts as engines

        bodies = engines.bodies_of((*before, snapshot.cell), [f"cell In[{number}]" for number in numbers])
        exception = _on_engines(exception, bodies)
        with suppress(Exception):  # a client that is closed
            accounts = engines.engine_accounts(shell.user_ns, raised, bodies) or accounts
    return msgspec.structs.replace(
        snapshot,
        exception=exception,
        accounts=accounts,
        cells=before,
        cell_numbers=numbers if inputs else (),
    )


def _on_engines(exception: ExceptionInfo, bodies: Sequence[Body]) -> ExceptionInfo:
    """Name the engines' cells in an exception as in this notebook: the one that failed, or that has the line shown."""
    import msgspec

    from dtdebug.notebook.engine_accounts import body_with
    from dtdebug_taxonomy.logs.open_traceback import ENGINE_CELL

    def named(frame: Frame) -> Frame:
        found = body_with(bodies, frame.line, frame.code) if frame.file == ENGINE_CELL else None
        return (
            frame if found is None else msgspec.structs.replace(frame, file=found.name, line=frame.line + found.above)
        )

    frames = tuple(map(named, exception.frames))
    causes = tuple(_on_engines(each, bodies) for each in exception.causes)
    return msgspec.structs.replace(exception, frames=frames, causes=causes)


def ours(cell: str, live: Live | None) -> tuple[bool, LastFailure | None]:
    """Return (True if the cell ran dtdebug, its result): its own answer is already in the output.

    Diagnosing that output would mistake our words for the user's program.
    """
    from dtdebug.storage import state_dir

    found: LastFailure | None = None
    if live is not None and live.run is not None and state_dir.modified_time(state_dir.LAST) >= live.since - _ROUNDED:
        from dtdebug.storage.last_failure import LastFailure

        found = LastFailure.of_child(live.run.path, live.since)
    return found is not None or bool(_SHELL.search(cell) and _OURS.search(cell)), found


def _inputs(shell: Any) -> Sequence[Any]:
    """Return the sources of all cells that ran, by their numbers."""
    raw = getattr(getattr(shell, "history_manager", None), "input_hist_raw", None) or ()
    return [compiled_text(text) if isinstance(text, str) else text for text in raw]


def _before(inputs: Sequence[Any], failed: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return the sources of the cells that ran before the failed one, up to the size of a program; and their numbers.

    The last number is that of the failed cell.
    """
    kept: dict[str, int] = {}
    size = 0
    for number, text in reversed([*enumerate(inputs)]):  # of one that ran several times unchanged, the last
        if isinstance(text, str) and text.strip() and text not in (failed, *kept):
            size += len(text)
            if size > _MOST_BEFORE:
                break
            kept[text] = number
    return tuple(reversed(kept)), (*reversed(kept.values()), len(inputs))


def _with_curves(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with a note on a fault in the curves that the cell has printed."""
    if not snapshot.output.strip():
        return snapshot  # the readers of curves take a tenth of the first failed cell to import
    import msgspec

    from dtdebug.recorded.curves.read import read_printed
    from dtdebug.recorded.curves.report import judge

    try:
        reading = judge(read_printed(snapshot.output, "the cell"))
    except Exception:  # curves must not cost the answer
        return snapshot
    if not reading.faulty:
        return snapshot
    return msgspec.structs.replace(snapshot, notes=(*snapshot.notes, f"Curves: {reading.findings[0].says}"))


def _with_ranks(live: Live, snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with the ranks of the cell, or with a note on why they are missing."""
    try:
        from dtdebug.notebook.postmortem import add_ranks

        return add_ranks(live, snapshot)
    except Exception as error:
        import msgspec

        note = f"ranks: {type(error).__name__}: {error}"[:200]
        return msgspec.structs.replace(snapshot, notes=(*snapshot.notes, note))


def has_framework() -> bool:
    """True if this process has imported a framework of distributed training."""
    return any(name in sys.modules for name in _FRAMEWORKS)


def _worth_a_look(exception: BaseException | None, output: str, cell: str) -> bool:
    """True if a quick look finds signs of distributed training, so that other errors don't load the knowledge."""
    if has_framework():
        return True
    try:
        message = user_objects.bounded_text(exception, 4_000)
    except user_objects.RAISES:
        message = ""
    return any(_WORTH_A_LOOK.search(text) for text in (message, cell, output))
