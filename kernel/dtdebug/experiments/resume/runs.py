"""Runs the job three times in a copy of its working folder: twice as it is, then from what the second run saved."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from dtdebug.errors import UsageError
from dtdebug.experiments.collectives import job_program, settings
from dtdebug.experiments.isolate import kill_run, memory_limits, workspace
from dtdebug.experiments.isolate.environment_changes import Paths, Seeds, run_variables
from dtdebug.experiments.isolate.inside.record_writer import read_notes
from dtdebug.experiments.isolate.job_command import move_paths, parse_job
from dtdebug.experiments.isolate.run_types import Choices
from dtdebug.experiments.resume import records, resume_option
from dtdebug.experiments.resume.records import RankNotes, Save
from dtdebug.privacy.sanitize import one_line
from dtdebug.storage import state_dir

_INSIDE = "dtdebug.experiments.resume.inside.install"
_PAUSE, _TOGETHER = 0.1, 20.0
"""Seconds between two looks at the notes, and for which ranks wait for each other before the folder is copied."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The user's choices."""

    steps: int = 5
    """Steps to compare after resuming."""
    after: int = 2
    """Steps before the save from which the job resumes."""
    timeout: float = 600.0
    """Seconds of each run."""
    resume_arguments: tuple[str, ...] = ()
    ranks: int | None = None
    """Number of ranks of the resumed run; None: as many as before."""


class Runs(msgspec.Struct, frozen=True, kw_only=True):
    """Notes of the three runs."""

    first: dict[int, RankNotes]
    second: dict[int, RankNotes]
    resumed: dict[int, RankNotes]
    saved_at: int
    """Steps of all optimizers when it saved."""
    saves: tuple[Save, ...]
    command: tuple[str, ...]
    """Command of the resumed run."""
    option: resume_option.ResumeOption | None
    said: str
    """Last line that the resumed run printed."""
    status: int | None
    """Exit status of the resumed run; None if we ended it."""
    home: str
    seconds: float


class RunFolder:
    """Folder of all runs, in which each takes place at the same path."""

    def __init__(self, words: Sequence[str], home: Path, folder: Path, plan: Plan) -> None:
        self._words, self._home, self._folder, self._plan = tuple(words), home, folder, plan
        self._begun = time.time()
        self.work = folder / "work"

    def check(self, say: Callable[[str], None]) -> Runs:
        """Make the three runs.

        Raises:
            UsageError: the job can't be checked; the message says why.

        """
        begun, plan = time.monotonic(), self._plan
        say("run 1 of 3: as it is, until it has saved")
        first, end = self._run("first", self._words, self._is_enough)
        saved_at, saves = self._saves(first, end)
        script = job_program.script(job_program.of(self._words))
        option = resume_option.find(self._home / script) if script is not None else None
        say(f"run 2 of 3: the same again, and copied after step {saved_at}, where it has saved")
        second, end = self._run("second", self._words, lambda r: _steps(r) >= saved_at + plan.steps, pause=saved_at)
        if not (self._folder / "copy").is_dir():
            raise UsageError(f"run --resume-check: run again, it did not come to its save: {end.said}")
        again = tuple(s for notes in second.values() for s in notes.saves if s.n == saved_at)
        shutil.rmtree(self.work, ignore_errors=True)
        (self._folder / "copy").rename(self.work)
        words = (*self._words, *self._resume_words(option, again or saves))
        if plan.ranks is not None:
            try:
                words = parse_job(words).with_ranks(plan.ranks)
            except ValueError as error:
                raise UsageError(f"run --resume-ranks {plan.ranks}: {error}") from None
        say(f"run 3 of 3: anew, from what it saved{_added_files(words, self._words)}")
        resumed, end = self._run("third", words, lambda ranks: _steps(ranks) >= plan.steps)
        self._refuse_off(resumed)
        return Runs(
            first=first, second=second, resumed=resumed, saved_at=saved_at, saves=again or saves, command=words,
            option=option, said=end.said, status=end.status, home=str(self.work),
            seconds=round(time.monotonic() - begun, 1),
        )  # fmt: skip

    def _is_enough(self, ranks: dict[int, RankNotes]) -> bool:
        saved = _first_save(ranks, self._plan.after)
        if any(notes.outside for notes in ranks.values()):
            return True
        return saved is not None and _steps(ranks) >= saved + self._plan.steps

    def _saves(self, ranks: dict[int, RankNotes], end: _End) -> tuple[int, tuple[Save, ...]]:
        """Return the steps before the save to resume from, and what was then saved; raises UsageError."""
        outside = [o for notes in ranks.values() for o in notes.outside]
        if outside:
            raise UsageError(
                f"run --resume-check: the program saves to {outside[0].path}, outside of its folder "
                f"({Path(outside[0].site[0]).name}:{outside[0].site[1]}); let it save below {self._home}"
            )
        self._refuse_off(ranks)
        if not any(notes.steps for notes in ranks.values()):
            why = f"it failed: {end.said}" if end.status else "it made no step of an optimizer of torch"
            raise UsageError(f"run --resume-check: {why if end.status is not None else 'no step within --timeout'}")
        all_saves = [s for notes in ranks.values() for s in notes.saves]
        saved = _first_save(ranks, self._plan.after)
        steps = _steps(ranks)
        if saved is None and all_saves:
            why = f"it saves only after step {max(s.n for s in all_saves)}, and {self._plan.after} are needed before"
            raise UsageError(f"run --resume-check: {why} (--resume-after)")
        if saved is None:
            failed = f"it failed at step {steps}: {end.said}" if end.status else f"it ended after {steps} steps"
            failed = failed if end.status is not None else f"no save within {self._plan.timeout:g} s ({steps} steps)"
            raise UsageError(f"run --resume-check: {failed}, and nothing was saved (torch.save, DCP, safetensors)")
        if steps <= saved:
            raise UsageError(
                f"run --resume-check: it saves only after its last step ({saved}), so that nothing is left to compare; "
                "let it save earlier, or train longer"
            )
        return saved, tuple(s for s in all_saves if s.n == saved)

    def _refuse_off(self, ranks: dict[int, RankNotes]) -> None:
        off = next((notes.off for notes in ranks.values() if notes.off), "")
        if off:
            raise UsageError(f"run --resume-check: its steps can't be followed ({off})")

    def _resume_words(self, option: resume_option.ResumeOption | None, saves: Sequence[Save]) -> list[str]:
        paths = list(dict.fromkeys(s.path for s in saves))
        names = [os.path.relpath(path, self.work) for path in paths]
        if self._plan.resume_arguments:
            return [word.replace(resume_option.SAVED, names[0]) for word in self._plan.resume_arguments]
        if option is None or any(word.partition("=")[0] == option.name for word in self._words):
            return []
        if not option.certain:
            raise UsageError(
                f"run --resume-check: {option.name} ({Path(option.file).name}:{option.line}) takes no path; say what "
                f'it is to be, as in --resume-args "{option.name} 1"'
            )
        return resume_option.arguments(option, names)

    def _run(
        self, name: str, words: Sequence[str], enough: Callable[[dict[int, RankNotes]], bool], pause: int | None = None
    ) -> tuple[dict[int, RankNotes], _End]:
        place = self._folder / name
        place.mkdir(mode=0o700)
        if not self.work.is_dir():
            self._copy(self._home, self.work)
        notes = place / "resume"
        paths = Paths(home=self._home, copy=self.work, place=place)
        env = run_variables({}, [], paths, Choices(), seeds=Seeds(), begun=self._begun)
        told = {"home": str(self.work.resolve()), "pause": pause}
        env |= {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")}
        env |= settings.job_variables(notes, [_INSIDE], told)
        process: subprocess.Popen[bytes] | None = None
        with (place / "said.txt").open("wb") as out:
            try:
                process = subprocess.Popen(
                    [*move_paths(words, self._home, self.work)], cwd=self.work, env=env, stdin=subprocess.DEVNULL,
                    stdout=out, stderr=subprocess.STDOUT, start_new_session=True,
                )  # fmt: skip
                status = self._follow(process, notes, enough, pause)
            except OSError as error:
                raise UsageError(f"run --resume-check: {words[0]}: can't be started: {error.strerror}") from None
            finally:
                kill_run.clear(process, place)
        denied = [row["name"] for row in read_notes(place / "notes") if row["kind"] == "denied"]
        if denied:
            raise UsageError(
                f"run --resume-check: the program writes to {denied[0]}, which is outside of its folder and was there "
                "before; let it write elsewhere"
            )
        found = records.read(notes)
        if name == "first":
            shutil.rmtree(self.work, ignore_errors=True)
        return found, _End(status, _last_line(place / "said.txt"))

    def _follow(
        self, process: subprocess.Popen[bytes], notes: Path, enough: Callable[[dict[int, RankNotes]], bool],
        pause: int | None,
    ) -> int | None:  # fmt: skip
        """Return the exit status of the job; None if it was ended."""
        until, size, paused_since, pace = time.monotonic() + self._plan.timeout, -1, 0.0, _PAUSE
        while time.monotonic() < until:
            with suppress(subprocess.TimeoutExpired):
                return process.wait(pace)
            if what := memory_limits.used_up(self._folder):
                raise UsageError(f"run --resume-check: a run was ended, for it nearly used up {what}")
            if pause is not None and (paused := len(list(notes.glob("paused-*")))):
                paused_since = paused_since or time.monotonic()
                ranks = max((r.world for r in records.read(notes).values()), default=1)
                if paused >= ranks or time.monotonic() > paused_since + _TOGETHER:
                    self._copy_tree()
                    (notes / "go").touch()
                    pause = None
                continue
            now = sum(path.stat().st_size for path in notes.glob("*.jsonl"))
            if now != size:
                size, looked = now, time.monotonic()
                if enough(records.read(notes)):
                    return None
                pace = max(_PAUSE, 4 * (time.monotonic() - looked))
        return None

    def _copy(self, home: Path, target: Path) -> None:
        try:
            workspace.copy(home, target)
        except OSError as error:
            raise UsageError(
                f"run --resume-check: {error.filename or home}: can't be copied: {error.strerror}"
            ) from None

    def _copy_tree(self) -> None:
        """Copy the folder as it is after the save; what the copy links to stays a link."""
        target = self._folder / "copy"
        try:
            shutil.copytree(self.work, target, symlinks=True)
        except (OSError, shutil.Error) as error:
            raise UsageError(
                f"run --resume-check: what it saved can't be copied: {one_line(str(error), 200)}"
            ) from None


class _End(msgspec.Struct, frozen=True):
    """End of a run."""

    status: int | None
    said: str


def _steps(ranks: dict[int, RankNotes]) -> int:
    """Return the steps that all ranks have begun."""
    return min((notes.steps[-1].n + 1 if notes.steps else 0 for notes in ranks.values()), default=0)


def _first_save(ranks: dict[int, RankNotes], after: int) -> int | None:
    return min((s.n for notes in ranks.values() for s in notes.saves if s.n >= after), default=None)


def _added_files(words: Sequence[str], before: Sequence[str]) -> str:
    added = words[len(before) :] if list(words[: len(before)]) == list(before) else words
    return f" ({' '.join(added)})" if added else ""


def _last_line(path: Path) -> str:
    with suppress(OSError):
        text = state_dir.read_start(path, 1 << 22)[-8192:].decode(errors="replace")
        lines = [line for line in text.splitlines() if line.strip()]
        error = next((line for line in reversed(lines) if _is_error(line)), "")
        return one_line(error or (lines[-1] if lines else ""), 300)
    return ""


def _is_error(line: str) -> bool:
    """True for the last line of a traceback, and not for the launcher's own."""
    words = line.split(": ")
    found = next(
        (w.split("]:")[-1].strip() for w in words if w.split("]:")[-1].strip().endswith(("Error", "Exception"))), ""
    )
    return bool(found) and "ChildFailedError" not in line
