"""`dtdebug run`: runs a job unchanged, and has its data ready when it fails or hangs.

The job stays in our process group: signals from a terminal, or from `kill` to the group, reach it directly, so that
only signals sent to us alone are forwarded (a launcher that gets SIGTERM twice leaves its ranks behind). The main
thread does nothing else; reading files or ranks happens in threads, which delay the end of the job only up to a bound.
"""

from __future__ import annotations

import errno
import os
import resource
import shutil
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from dtdebug.experiments.collectives.inside.install import VARIABLE as COURSE
from dtdebug.experiments.invariants.result import NOTHING_SEEN
from dtdebug.live.hosts.presence import Presence
from dtdebug.live.job import recent_runs
from dtdebug.live.job.conclude import success_case
from dtdebug.live.job.monitor import Monitor
from dtdebug.live.job.output_store import fork, wait_for_exit
from dtdebug.live.job.printed_curves import final_lines, with_curves
from dtdebug.live.job.relay import Relay, RelayedStream, channels
from dtdebug.live.job.reporter import Options, Speaker
from dtdebug.privacy.sanitize import clean_command
from dtdebug.storage import editor_marks, state_dir
from dtdebug.storage.run_folder import Run, RunFolder

STOPPED = 124
"""Exit status of a job ended by `--stop-on-hang`, as with timeout(1)."""
NOT_FOUND, NOT_EXECUTABLE = 127, 126
"""Exit statuses of a command that can't be started, as in a shell."""
_PASSED_ON = (
    signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT,
    signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT, signal.SIGTSTP,
)  # fmt: skip
_IMPATIENT = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_FROM_KERNEL = 128
"""`si_code` of a signal from the terminal: the job has received it already."""
_TICK = 0.2
"""Seconds between checks for an end without a signal."""
_LAST_WORDS, _CURVES, _COLLECTING, _DISK = 2.0, 10.0, 30.0, 5.0
"""Seconds to wait for remaining output, for the curves of a job that succeeded, for collecting after a failure, and for
a disk to answer before the start."""


def launch(command: Sequence[str], options: Options) -> int:
    """Run the command and return its exit status, or `STOPPED`; a signal that ended it also ends this process.

    Raises:
        OSError: the command can't be started.

    """
    try:
        if not _answers(options.folder or state_dir.folder()):
            raise TimeoutError(errno.ETIMEDOUT, "the disk does not answer", str(options.folder or state_dir.folder()))
        folder = _folder(options, command)
        through = channels()
    except OSError as error:
        Speaker().say(f"nothing is collected: {error.strerror}: {error.filename or 'a standard stream'}")
        _replace(command)
    status = _Job(command, folder, through, options).run()
    with suppress(Exception):
        options.after()
    if status >= 0:
        return status
    _die(-status)
    return 128 - status


def _folder(options: Options, command: Sequence[str]) -> RunFolder:
    if options.folder is None:
        recent_runs.forget_old()
        return RunFolder.make()
    return recent_runs.take(options.folder, command)


def _answers(place: Path) -> bool:
    """True if the place is writable or fails at once; a disk that has gone would block the job forever."""

    def touch() -> None:
        there = next(folder for folder in (place, *place.absolute().parents) if folder.is_dir())
        Path(tempfile.mkdtemp(dir=there, prefix=".dtdebug-")).rmdir()

    child = fork(touch)
    return child is None or wait_for_exit(child, _DISK)


def _replace(command: Sequence[str]) -> None:
    """Replace this process by the command: without a place to collect data there is nothing else to do."""
    for name in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them
        signal.signal(name, signal.SIG_DFL)
    os.execvp(command[0], list(command))  # noqa: S606 - this is what the user asked for


def _arming(folder: RunFolder, options: Options) -> dict[str, str]:
    """Return the variables that arm the ranks; none if that fails."""
    try:
        from dtdebug.live.agent.arm import arming_variables

        found = arming_variables(folder)
        if options.looks_at_training:
            from dtdebug.experiments.collectives import settings

            found |= settings.job_variables(*_watching(folder, options))
    except Exception as error:
        Speaker().say(f"the ranks are not armed ({type(error).__name__}: {error}); the job runs anyway")
        return {}
    return found


def _watching(folder: RunFolder, options: Options) -> tuple[Path, list[str], dict[str, Any]]:
    """Return the folder, tasks and options for the ranks: looks at the training, and what the user's options add."""
    told: dict[str, Any] = {}
    if named := options.environment.get(COURSE):
        told = msgspec.json.decode(state_dir.read_start(Path(named), 1 << 20), type=dict[str, Any])
    looks = {"watch": options.watch, "parity": options.parity, "nonfinite": options.nonfinite}
    to, do = Path(told.pop("folder", folder.path)), [*told.pop("do", ()), *(name for name, on in looks.items() if on)]
    told |= {"watched": str(folder.path.absolute()), "parity": options.parity}
    if options.contract is not None:
        told["contract"], told["free_loops"], told["options"] = options.contract
        do.append("dtdebug.experiments.call_plan.inside")
    return to, do, told


class _Job:
    """A job from its start to its end."""

    def __init__(
        self, command: Sequence[str], folder: RunFolder, through: list[RelayedStream], options: Options
    ) -> None:
        self._command, self._folder, self._options = tuple(command), folder, options
        self._through = through
        self._relay = Relay(through, folder.output)
        self._speaker = Speaker(self._relay, options, folder)
        self._hosts = Presence(folder, command)
        self._monitor = Monitor(folder, self._relay, self._speaker, options, self._hosts)
        self._saving = threading.Thread(target=self._record_start, name="dtdebug-begun", daemon=True)
        self._pid = 0
        self._impatient = {name for name in _IMPATIENT if signal.getsignal(name) != signal.SIG_IGN}
        self._begun = time.time()

    def run(self) -> int:
        """Run the job and return its status, or its negated signal."""
        # Block even the signals that we were started to ignore (nohup, cron, `&` in a script): the job starts with them
        # ignored as it would without us, but may handle them later, and blocked signals still reach us.
        signals = {*_PASSED_ON, signal.SIGCHLD, signal.SIGWINCH}
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        variables = {**os.environ, **self._options.environment, **_arming(self._folder, self._options)}
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
        try:
            self._pid = self._spawn(variables, before)
        except OSError:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            self._hosts.end(NOT_FOUND)
            if len(self._hosts.all()) == 1:
                shutil.rmtree(self._folder.path, ignore_errors=True)  # nothing has started
            raise
        self._relay.start(self._pid)
        self._saving.start()  # a slow disk must not keep a signal from the job
        self._monitor.start(self._pid)
        status = self._follow(signals)
        with suppress(Exception):
            self._monitor.stop()
            self._relay.wait(_LAST_WORDS)
            self._finish(status, signals)
        while signal.sigtimedwait(signals, 0):  # an impatient user's signals: nothing is left to end
            pass
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return STOPPED if self._monitor.stopped else status

    def _spawn(self, variables: Mapping[str, str], mask: Iterable[int]) -> int:
        def begin(*command: str) -> int:
            return os.posix_spawnp(
                command[0],
                command,
                variables,
                file_actions=[(os.POSIX_SPAWN_DUP2, c.theirs, target) for c in self._through for target in c.targets],
                setsigmask=mask,
                setsigdef=(signal.SIGPIPE, signal.SIGXFSZ),
            )

        try:
            return begin(*self._command)
        except OSError as error:
            script = shutil.which(self._command[0])
            if error.errno != errno.ENOEXEC or script is None:
                raise
            return begin("/bin/sh", script, *self._command[1:])  # no shebang line: run it by sh, as shells do

    def _record_start(self) -> None:
        """Record that the job has started."""
        self._hosts.begin(self._pid)
        self._save()

    def _save(self, status: int | None = None) -> None:
        finished = time.time() if status is not None else None
        if status is not None:
            self._hosts.end(status)
        if self._folder.output.parent == self._folder.hosts:  # run.json belongs to the first host
            return
        with suppress(OSError):
            self._folder.save_run(
                Run(
                    command=clean_command(self._command),
                    started=self._begun,
                    finished=finished,
                    host=socket.gethostname(),
                    pid=self._pid,
                    status=status,
                )
            )

    def _follow(self, signals: set[signal.Signals]) -> int:
        """Forward signals until the job has ended."""
        while True:
            if (info := signal.sigtimedwait(signals, _TICK)) is not None:
                self._pass_on(info)
            if (status := self._poll_exit()) is not None:
                return status

    def _pass_on(self, info: signal.struct_siginfo) -> None:
        name = info.si_signo
        if name in _PASSED_ON and info.si_code != _FROM_KERNEL and not self._relay.got(name):
            with suppress(OSError):
                os.kill(self._pid, name)
        if name == signal.SIGINT and not _ignores(self._pid, name):
            self._monitor.interrupt()
        elif name == signal.SIGCONT:
            self._monitor.resume()

    def _poll_exit(self) -> int | None:
        pid, status = os.waitpid(self._pid, os.WNOHANG | os.WUNTRACED)
        if not pid:
            return None
        if not os.WIFSTOPPED(status):
            return os.waitstatus_to_exitcode(status)
        if os.WSTOPSIG(status) in (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU):
            os.kill(os.getpid(), signal.SIGSTOP)  # so that the shell sees the job stopped
        return None

    def _finish(self, status: int, signals: set[signal.Signals]) -> None:
        """Report why the job failed; nothing if it did not."""
        done = threading.Event()
        threading.Thread(target=self._conclude, args=(status, done), daemon=True).start()
        collects = bool(status) or self._options.looks_at_training
        until = time.monotonic() + (_COLLECTING if collects else _CURVES)
        while not done.is_set():
            info = signal.sigtimedwait(signals, 0.02)
            impatient = info is not None and info.si_signo in self._impatient
            if impatient or time.monotonic() > until:
                if not collects:  # nothing is known to be wrong
                    return
                why = "was interrupted" if impatient else "took too long"
                self._speaker.say(f"collecting {why}; what there is: {self._folder.path}")
                return

    def _report_success(self) -> None:
        """Report the watch's findings and faulty curves, and write to the user's file that the job has succeeded."""
        complete = self._relay.wait_for_copy(_LAST_WORDS)  # else the disk hangs
        reading = self._monitor.curve_reading() if complete else None
        shown = ""
        if self._options.output:
            self._speaker.write(with_curves(success_case(self._folder), reading), "")
        elif self._options.looks_at_training and not self._options.quiet:
            found = success_case(self._folder)
            if found.watch or found.late:
                shown = self._speaker.report(found, "")
            for note in () if found.watch or found.late else found.notes:
                held = "nothing that must hold was violated; " if note.startswith("watch: ") else ""
                self._speaker.say(f"{'' if note.startswith(NOTHING_SEEN) else held}{note}")
        told = self._options
        self._speaker.show(final_lines(reading, below=shown, healthy=told.watch, full=told.full))

    def _conclude(self, status: int, done: threading.Event) -> None:
        try:
            self._saving.join()
            self._save(status)
            if status:
                self._relay.wait_for_copy(_LAST_WORDS)
            else:
                with suppress(Exception):
                    editor_marks.drop_failure(editor_marks.job_of(self._command))
            if status in (0, -signal.SIGPIPE):  # SIGPIPE: the reader has gone, as with `| head`
                self._hosts.silent()
                if not self._monitor.stopped and not self._hosts.has_failed_host():
                    self._report_success()
            elif self._monitor.stopped:
                self._monitor.report_last()
            else:
                self._monitor.conclude(_how(status, interrupted=self._monitor.interrupted))
        except Exception as error:
            self._speaker.say(f"collecting failed ({type(error).__name__}: {error}); see {self._folder.path}")
        finally:
            done.set()


def _how(status: int, *, interrupted: bool) -> str:
    if interrupted:
        return "the job was interrupted"
    if status < 0:
        from dtdebug_taxonomy.logs.exits import signal_name

        return f"the job was ended by {signal_name(-status)}"
    return f"the job ended with exit code {status}"


def _ignores(pid: int, name: int) -> bool:
    """True if the process ignores that signal now; False if unknown."""
    with suppress(OSError, ValueError):
        for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("SigIgn:"):
                return bool(int(line.split()[1], 16) >> (name - 1) & 1)
    return False


def _die(number: int) -> None:
    """End this process as the job ended, without writing a core dump."""
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError, ValueError):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
