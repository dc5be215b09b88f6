"""Watches a running job for a hang and for the first rank that fails, and reports the result."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from dtdebug.experiments.invariants.announce import Announcer
from dtdebug.live.hosts import rendezvous_verdict
from dtdebug.live.hosts.launcher_state import waiting
from dtdebug.live.hosts.presence import HostView, Presence
from dtdebug.live.job import progress
from dtdebug.live.job.conclude import conclude, essence, printed_output
from dtdebug.live.job.first_word import AFTER, first_look, first_word
from dtdebug.live.job.judge import analyse_records
from dtdebug.live.job.observe import LiveRanks, alive, ask_ranks, before_interrupt, exchange_views, last, merge_states
from dtdebug.live.job.printed_curves import PrintedCurves, fault_notes, final_lines
from dtdebug.live.job.ras_view import with_ras
from dtdebug.live.job.relay import Relay
from dtdebug.live.job.reporter import Options, Speaker
from dtdebug.live.job.restarts import attempt, attempts
from dtdebug.live.probe.liveness import Deaths, Progress, end, living
from dtdebug.live.probe.processes import MemoryKills
from dtdebug.privacy.sanitize import clean
from dtdebug.storage import VARIABLE
from dtdebug.storage.run_folder import RunFolder
from dtdebug_taxonomy.model.ranks import RankState, Verdict
from dtdebug_taxonomy.presentation.case_json import Case

if TYPE_CHECKING:
    from dtdebug.recorded.curves.report import CurveReading

_TICK, _LOOK, _SHARE = 0.2, 1.0, 0.05
"""Seconds between checks of alarms and of records, and the share of a core that reading the records may take."""
_AGAIN = 60.0
"""Seconds until a reported hang is examined again."""
_MOVING = 4.0
"""Seconds without changed counters in a job that moves: records are written every two."""
_PATIENCE, _UNFINISHED = 5.0, 15.0
"""Seconds from SIGTERM to SIGKILL, and for an observation that began before the end of the job."""


class Monitor:
    """Watches from a thread, so that a slow file system or rank does not delay the job's end."""

    def __init__(self, folder: RunFolder, relay: Relay, speaker: Speaker, options: Options, hosts: Presence) -> None:
        self.interrupted = False
        """True if the user wants the job to end."""
        self.stopped = False
        """True if the job was ended because it hangs."""
        self._folder, self._relay, self._speaker, self._options = folder, relay, speaker, options
        self._hosts, self._deferred = hosts, False
        self._rankless = time.monotonic()
        """Time since which no rank of this host is alive."""
        self._deaths, self._memory, self._progress = Deaths(folder), MemoryKills(), Progress(time.monotonic())
        self._records: list[RankState] = []
        self._seen = LiveRanks()
        self._early: LiveRanks | None = None
        """Observation at the first word, before the verdict."""
        self._asked = False
        self._printed: str | None = None
        """Output of the job when the user ended it."""
        self._moving = False
        """True if the counters moved until the user ended the job."""
        self._before: tuple[RankState, ...] = ()
        """Records of the ranks at that time."""
        self._reported: Verdict | None = None
        self._last: tuple[Case, str] | None = None
        self._hang: Verdict | None = None
        """Last verdict on a hang, even if a counter has moved since."""
        self._standing: Case | None = None
        """Case of that verdict."""
        self._foretell_after = AFTER
        """Seconds without progress until the first word, which is said once."""
        self._moves = 0
        self._next_look = 0.0
        self._examine_after = options.hang_after
        self._job = 0
        self._watch = Announcer(folder.path, speaker.say) if options.watch and not options.quiet else None
        self._curves = PrintedCurves(folder.output)
        """Curves that the job prints."""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="dtdebug-monitor", daemon=True)

    def start(self, job: int) -> None:
        """Start watching the job with that process id."""
        self._job = job
        self._deaths.start()
        self._thread.start()

    def interrupt(self) -> None:
        """Record that the user ends the job, and its state now, which the interrupt changes."""
        if not self.interrupted:
            self._moving = self._progress.standing(self._records) < _MOVING
            with suppress(Exception):
                self._printed = printed_output(self._folder)
            self._before = tuple(self._records)
            self.interrupted = True

    def resume(self) -> None:
        """Note that the job continues after being stopped, as by Ctrl-Z."""
        self._progress.restart(time.monotonic())

    def stop(self) -> None:
        """Stop watching after the end of the job: no new observation is started."""
        self._stop.set()
        self._deaths.stop()

    def conclude(self, what: str) -> None:
        """Report what is found after the end."""
        from dtdebug.live.job.saved_case import snapshot_of, without_step
        from dtdebug.storage.last_failure import LastFailure

        if (self._options.stop_on_hang or self._options.stop_unexplained) and self._hosts.has_stopped_host():
            self.stopped = True
            self._defer()
            return
        self._thread.join(_UNFINISHED)  # an observation from before the end saw more than is visible now
        after = ask_ranks(self._folder, twice=False).states if alive(self._folder) else last(self._folder).states
        count, starved = self._memory.count_kills()
        states, deaths = merge_states(self._seen.states, after), self._deaths.all_deaths()
        if self.interrupted and not self._moving:
            states, deaths = before_interrupt(states, self._before, deaths)
        restarted = attempt(states) > attempt(self._seen.states)  # earlier observations do not apply to this attempt
        seen = msgspec.structs.replace(
            self._seen,
            states=states,
            progress=progress.still(self._seen.progress, self._seen.states, after),
            verdict=None if restarted else self._hang or self._seen.verdict,
            measured=self._hang is not None and not restarted,
            printed=self._printed,
            notes=(*self._seen.notes, *self._relay.notes()),
        )
        pool = exchange_views(self._hosts, seen, deaths, starved, final=True)
        if pool is None:
            self._defer()
            return
        reading = self.curve_reading()
        found = conclude(
            self._folder,
            pool.look,
            deaths=pool.deaths,
            starved=pool.starved,
            starvations=count or 0,
            moving=(self._moving and self._hang is None) or None,
            hosts=self._hosts.all(),
            curves=fault_notes(reading),
            standing=self._standing if self._hang is not None and not restarted else None,
        )
        if self.interrupted and found.verdict.kind == "none" and not self._options.output:
            self._speaker.remark(
                f"interrupted; the ranks were making progress. All that was collected: {self._folder.path}"
            )
            self._speaker.show(final_lines(reading, full=self._options.full))
            return
        stays = self._standing is not None and found.diagnosis is self._standing.diagnosis
        found = without_step(found, "dtdebug attach")  # nobody is left to ask
        if stays and found.diagnosis is not None:  # the last look may have been at ranks that were ending
            LastFailure(snapshot=snapshot_of(found, self._folder), diagnosis=found.diagnosis).save()
        known = self._hang is not None and essence(found.verdict) == essence(self._hang)
        with suppress(Exception):  # an additional remark must not cost the answer
            if note := self._options.foreseen(found):
                found = msgspec.structs.replace(found, notes=(note, *found.notes))
        shown = self._speaker.report(found, what, brief=known)
        self._speaker.show(final_lines(reading, below=shown, full=self._options.full))

    def curve_reading(self) -> CurveReading | None:
        """Return the curves that the job has printed to its end; None if there are none."""
        with suppress(Exception):  # curves must not cost the answer
            return self._curves.reading()
        return None

    def report_last(self) -> None:
        """Report the hang for which the job was ended: below what its launcher printed when it ended."""
        if self._last is not None:
            self._speaker.report(*self._last)

    def _run(self) -> None:
        failed = False
        while not self._stop.wait(_TICK):
            try:
                self._tick()
            except Exception as error:
                if not failed:
                    self._speaker.say(f"watching failed ({type(error).__name__}: {error}); the job goes on")
                failed = True
                self._examine_after *= 2

    def _tick(self) -> None:
        now = time.monotonic()
        if now >= self._next_look:
            spent = time.thread_time()
            self._records = list(self._folder.records())
            self._deaths.know(self._records)
            self._note_progress(moved=self._progress.look(self._records, self._relay.passed_bytes(), now))
            spent = time.thread_time() - spent  # on a busy machine most of the time is waiting for a core
            self._next_look = now + max(_LOOK, spent / _SHARE, 2 * (time.monotonic() - now))
            self._hosts.beat(self._records)
        if self._watch is not None:
            self._watch.tick(now)
        for fault in self._curves.look(now):
            self._speaker.remark(fault)
        if not self._asked and (self.interrupted or self._deaths.alarm.is_set() or self._hosts.has_failed_host()):
            self._asked = True
            self._glance()
        elif self._meets(now):
            self._meet(now)
        elif self._ranks_started():
            standing = self._progress.standing(self._records)
            if standing >= self._examine_after:
                self._examine()
            elif standing >= self._foretell_after and self._reported is None:
                self._foretell(standing)

    def _ranks_started(self) -> bool:
        return any(r.initialized or (r.world_size or 0) > 1 for r in self._records)

    def _foretell(self, standing: float) -> None:
        """Say who is waited for, once: a look that asks the ranks' agents only, no verdict.

        What it sees is kept for a job that somebody ends before the verdict: no rank answers then.
        """
        self._foretell_after = standing + AFTER
        if self._hosts.reporter():
            return
        states = first_look(self._folder)
        if word := first_word(self._folder, states, standing):
            self._seen = self._early = LiveRanks(states=states)
            self._speaker.remark(word)
            self._foretell_after = float("inf")

    def _note_progress(self, *, moved: bool) -> None:
        """End a hang once more moved than the one step that a time-out makes."""
        self._moves = self._moves + 1 if moved else 0
        if self._moves < 2:
            return
        if self._seen is self._early:
            self._seen = LiveRanks()
        if self._reported is not None and not (self.stopped or self.interrupted or self._deaths.alarm.is_set()):
            self._speaker.remark("the job moves again")
            self._hang = None
        self._reported = None
        self._examine_after = self._options.hang_after
        if self._foretell_after != float("inf"):
            self._foretell_after = AFTER

    def _glance(self) -> None:
        """Observe the ranks before the launcher ends them."""
        seen = ask_ranks(self._folder, twice=False)
        if self.interrupted and not self._moving:
            seen = msgspec.structs.replace(seen, states=before_interrupt(seen.states, self._before)[0])
        tried = attempts(seen.states)
        found, _ = analyse_records(self._folder, tried.last, moving=self._moving or None, since=tried.since)
        verdict = found.verdict if found is not None else None
        stands = verdict is not None and verdict.kind not in ("none", "not_understood", "dead")
        self._seen = msgspec.structs.replace(
            seen,
            states=merge_states(self._seen.states, seen.states),
            progress=progress.still(self._seen.progress, self._seen.states, seen.states),
            verdict=verdict if stands else None,
        )
        if not self._seen.states and self.interrupted and (met := waiting(self._job)):
            self._hosts.meets(*met)
            self._hang = rendezvous_verdict.rendezvous_verdict(self._hosts.all())
        self._hosts.contribute(HostView(states=self._seen.states, deaths=tuple(self._deaths.all_deaths())))

    def _defer(self) -> None:
        """Report once that another host reports."""
        if not self._deferred:
            self._deferred = True
            self._speaker.remark(f"host {self._hosts.reporter()} reports: {clean(str(self._folder.path))}")

    def _meets(self, now: float) -> bool:
        """True if it is time to check whether the launcher waits for other hosts: no rank of this one is alive."""
        if any(r.host == socket.gethostname() and r.alive is not False for r in self._records):
            self._rankless = now
            self._hosts.meets(None, None)
            return False
        since = now - self._rankless
        return since >= self._examine_after or (
            self._hosts.has_waiting_launcher() and self._hosts.own.meeting is None and since > _MOVING
        )

    def _meet(self, now: float) -> None:
        """Report if the launchers of several hosts do not connect."""
        found = waiting(self._job)
        self._hosts.meets(*(found or (None, None)))
        since = now - self._rankless
        if since >= self._examine_after:
            self._examine_after = since + min(_AGAIN, self._options.hang_after)
        if found is None or self._stop.is_set() or not rendezvous_verdict.is_waiting(self._hosts.all()):
            return
        if rendezvous_verdict.all_came(self._hosts.all()) and since < max(_AGAIN, 2 * self._options.hang_after):
            return  # the last one has just arrived: they need a moment
        if self._hosts.reporter():
            self._defer()
            self._hosts.await_report()
        else:
            self._hosts.gather_meetings()
            verdict = rendezvous_verdict.rendezvous_verdict(self._hosts.all())
            self._hang = verdict
            if self._reported is None or verdict.summary != self._reported.summary:
                self._reported = verdict
                case = conclude(self._folder, LiveRanks(verdict=verdict), hosts=self._hosts.all())
                self._speaker.report(case, f"no rank has started for {found[1].seconds:.0f} s")
        if self._options.stop_on_hang:
            self._end(self._job)

    def _examine(self) -> None:
        """Examine ranks whose counters have stopped, and report if they make no progress."""
        standing = self._progress.standing(self._records)
        seen = msgspec.structs.replace(ask_ranks(self._folder), seconds=standing)
        pool = exchange_views(self._hosts, seen, self._deaths.all_deaths(), final=False)
        self._seen, deaths = (pool.look, pool.deaths) if pool else (seen, self._deaths.all_deaths())
        hosts, keep = self._hosts.all(), pool is not None
        found = conclude(self._folder, self._seen, deaths=deaths, moving=False, hosts=hosts, keep=keep)
        found = with_ras(found, self._seen.states)
        self._records = list(self._folder.records())
        self._progress.look(self._records, self._relay.passed_bytes(), time.monotonic())
        standing = self._progress.standing(self._records)
        moved = standing < self._examine_after
        if found.verdict.kind == "none":  # work that no counter shows is progress
            self._progress.restart(time.monotonic())
        elif not moved:
            self._examine_after = standing + self._pause(found, standing)
        if moved or found.verdict.kind == "none":
            self._seen = LiveRanks()  # places of ranks that were moving do not show where they end
            return
        if self._ends(found):  # nobody can look into it then
            found = msgspec.structs.replace(found, next="")
        same = self._hang is not None and essence(found.verdict) == essence(self._hang)
        if not same and (self._hang is None or not self._stop.is_set()):  # ranks that end meanwhile show less
            self._hang, self._standing = found.verdict, found
        if self._stop.is_set():  # it has ended meanwhile: one report is enough
            return
        if not keep:
            self._defer()
            self._hosts.await_report()
        elif self._reported is None or essence(found.verdict) != essence(self._reported):
            self._reported = found.verdict
            what = f"no rank has made progress for {standing:.0f} s"
            if self._ends(found):
                self._last = (found, what)
                self._speaker.remark(f"{what}; ending the job")
            else:
                self._speaker.report(found, what)
        if self._ends(found):
            self._end(self._job, *self._ours())

    def _end(self, *pids: int) -> None:
        """End the job, which hangs."""
        self.stopped = True
        self._hosts.stops()
        end(pids, _PATIENCE)

    def _pause(self, found: Case, standing: float) -> float:
        """Return the seconds until hanging ranks are examined again: soon if one of them may only be slow.

        A program that was importing or computing when first examined may have hung since then.
        """
        if not found.verdict.open:
            return max(_AGAIN, self._options.hang_after)
        return min(_AGAIN, max(self._options.hang_after, _MOVING, standing / 4))

    def _ends(self, found: Case) -> bool:
        """True if the user wants a job with this result to be ended."""
        if self._options.stop_unexplained:
            return True
        proven = found.verdict.kind not in ("none", "not_understood") and not found.verdict.open
        return self._options.stop_on_hang and proven

    def _ours(self) -> list[int]:
        """Return living ranks outside of the job's process tree. Never kill on a record alone."""
        from dtdebug.live.probe.processes import variables

        told = [r.pid for r in self._records if r.host == socket.gethostname() and r.alive is not False]
        here = str(self._folder.path.absolute())
        return [pid for pid in living(told) if variables(pid).get(VARIABLE) == here]
