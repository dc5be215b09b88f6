"""Runs `%dtdebug state`, `hang` and `doctor`, and reacts to interrupts and to the death of a kernel."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from dtdebug.live.probe.processes import liveness, ranks_below
from dtdebug.notebook import render_ranks
from dtdebug.notebook.hang_answer import diagnose_hang
from dtdebug.notebook.observe_ranks import TIMEOUT, conclude, look_at_ranks
from dtdebug.notebook.ranks_seen import Kind, RanksSeen
from dtdebug.privacy.sanitize import clean
from dtdebug_taxonomy.model.rank_ranges import spell
from dtdebug_taxonomy.model.snapshot import Snapshot

if TYPE_CHECKING:
    from dtdebug.notebook.live_kernel import LiveExtension
    from dtdebug.wizard.session import Session
    from dtdebug_taxonomy.model.snapshot import OpenStore
_LIMIT = 300.0
_NAMED = 16
"""Maximum number of ranges of ranks that a line names."""


def show_ranks(extension: LiveExtension, kind: Kind) -> None:
    """Inspect all ranks and show the result; works from a subshell while a cell hangs."""
    seen = look_at_ranks(extension.require_live(), kind, TIMEOUT)
    if kind == "hang":
        _show_hang(extension, seen)
    else:
        extension.publish(render_ranks.bundle(seen))
        _keep(extension, seen)


def show_interrupt(extension: LiveExtension) -> None:
    """Show below an interrupted cell which rank the others wait for, if there is one."""
    if not ranks_below(os.getpid()) and not _is_rank():
        return
    seen = look_at_ranks(extension.require_live(), "hang")
    if seen.verdict is not None and seen.verdict.kind != "none":
        _show_hang(extension, seen)


def _show_hang(extension: LiveExtension, seen: RanksSeen) -> None:
    """Publish the card of a hang, for `%dtdebug` to continue from; without a verdict, the places of the ranks."""
    found = diagnose_hang(extension.require_live(), seen)
    if found is None:
        extension.publish(render_ranks.bundle(seen))
        _keep(extension, seen)
        return
    from dtdebug.presentation.diagnosis_card import bundle

    extension.snapshot, diagnosis = found
    extension.session = extension.wizard = None
    extension.publish(render_ranks.below(bundle(diagnosis, extension.snapshot), seen))


def left_behind(extension: LiveExtension) -> None:
    """Print below a failed cell what it left running or open, and the command that ends it."""
    live = extension.require_live()
    if not live.name or live.run is None:
        return
    lines = [f"this kernel still {_serves(live.store.left)}"] if live.store.left is not None else []
    if live.has_records or ranks_below(os.getpid()):
        from dtdebug.notebook import leftover_ranks

        lines = [each.line for each in leftover_ranks.wait_leftovers(live.name)] + lines
    if lines:
        ends = "%dtdebug end ends them" if live.store.left is None else "%dtdebug end puts that right"
        extension.publish({"text/plain": "\n".join(f"dtdebug: {line}" for line in (*lines, ends))})


def _serves(store: OpenStore) -> str:
    cell = f" of cell [{store.cell}]" if store.cell is not None else ""
    return f"serves the store{cell} at port {store.port}: the next run here meets its old keys"


def end(extension: LiveExtension) -> None:
    """End the ranks that cells of this kernel have left behind, and close the store of a failed run."""
    from dtdebug.notebook import leftover_ranks

    live = extension.require_live()
    found = leftover_ranks.find_leftovers(live.name)
    if closed := live.store.close():
        print(f"dtdebug: {closed}")
    if not found:
        if not closed:
            print("dtdebug: no rank of an earlier cell of this kernel is running on this host")
        return
    for each in found:
        print(f"dtdebug: {each.line}")
    _, told = leftover_ranks.end(live.name, [pid for each in found for pid in each.pids], os.getpid())
    print(f"dtdebug: {told}")


def _is_rank() -> bool:
    """True if the kernel itself is a rank."""
    from dtdebug.process.rank_state import rank_state

    own = rank_state()
    return own is not None and own.initialized


def _keep(extension: LiveExtension, seen: RanksSeen) -> None:
    """Let `%dtdebug` continue from the observation if a rank hangs."""
    if seen.verdict is None or seen.verdict.kind == "none":
        return
    from dtdebug.capture import capture

    snapshot = extension.snapshot or capture(devices=False)
    extension.snapshot = msgspec.structs.replace(snapshot, ranks=seen.ranks, verdict=seen.verdict)
    extension.session = extension.wizard = None


def after_death(extension: LiveExtension) -> Snapshot | None:
    """Return what this notebook's kernel was doing if it died while it ran a cell, and print a line about it."""
    from dtdebug.notebook.cell_journal import find_dead_kernel

    found = find_dead_kernel(extension.require_live().name)
    if found is None:
        return None
    path, entry = found
    from dtdebug.notebook.kernel_death import crash_report, death_sentence
    from dtdebug.storage.run_folder import RunFolder

    run = RunFolder(path)
    records = [*run.records()]
    ranks = tuple(s for s in records if s.alive is False or liveness(s.pid or 0, s.time) != "ended")
    told = death_sentence(path, entry)
    with_it = [s.rank for s in records if s not in ranks and s.rank is not None]  # no record of how they ended
    and_so = f"; {spell(with_it, _NAMED)} ended without a record of how, perhaps with it" if with_it else ""
    print(f"dtdebug: {told[0].lower()}{told[1:]}{and_so}")
    verdict = conclude(run, ranks, "").verdict
    if verdict is not None and verdict.kind == "none":  # torch's spawned ranks end well when their parent is gone
        ranks, verdict = (), None
    return Snapshot(
        situation=f"The kernel died while cell In[{entry.number}] ran.",
        output=crash_report(path, entry),
        source="what the kernel wrote when it crashed",
        cell=entry.source,
        ranks=ranks,
        verdict=verdict,
    )


def show_doctor(extension: LiveExtension, words: Sequence[str]) -> None:
    """Run the doctor, show its card, and use its measurements as answers to the wizard's questions."""
    from dtdebug.doctor import notebook_card, render
    from dtdebug.doctor.report_types import Report

    command = [sys.executable, "-P", "-m", "dtdebug", "doctor", "--format", "json", *words]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=_LIMIT, stdin=subprocess.DEVNULL, check=False
    )
    line = next((row for row in done.stdout.splitlines() if row.startswith("{")), "")
    if not line:
        print(clean((done.stderr or done.stdout).strip()))
        return
    report = msgspec.json.decode(line, type=Report)
    extension.publish(
        {
            notebook_card.MIME: notebook_card.small(report),
            "text/html": notebook_card.html(report),
            "text/plain": render.to_text(report),
        }
    )
    known = {k: (v, f"dtdebug doctor: {report.grounds.get(k, '')}") for k, v in report.observations.items()}
    extension.examined = known


def add_measurements(extension: LiveExtension, session: Session) -> Session:
    """Return the session with the doctor's measurements in this notebook."""
    if not extension.examined or session.snapshot.examined == extension.examined:
        return session
    snapshot = msgspec.structs.replace(session.snapshot, examined=extension.examined)
    return msgspec.structs.replace(session, snapshot=snapshot)
