"""`dtdebug run`: the job runs as before; when it fails or hangs, the verdict names the rank and the place."""

import json
import os
import signal
import stat
import subprocess
import sys
import tarfile
import time

import msgspec
import pexpect
import pytest

from dtdebug.live.job import output_store, recent_runs, report
from dtdebug.live.job.observe import merge_states
from dtdebug.live.job.restarts import attempts
from dtdebug.live.probe.liveness import Progress, waits
from dtdebug.storage import state_dir
from dtdebug.storage.run_folder import Run, RunFolder
from dtdebug_taxonomy.model.ranks import CallSite, Frame, Group, Operation, RankState, Verdict
from dtdebug_taxonomy.presentation.case_json import Case

DTDEBUG = [sys.executable, "-m", "dtdebug"]
LIMIT = 90
"""Seconds that nothing here may take."""

JOB = """
import datetime, os, signal, sys, time
import torch, torch.distributed as dist

def load():
    if fault == "raise":
        raise ValueError("boom")
    if fault == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if fault == "sleep":
        os.write(1, b"asleep\\n")
        time.sleep(60)

fault, rank = sys.argv[1], int(os.environ["RANK"])
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=60))
tensor = torch.ones(4)
for step in range(6):
    dist.all_reduce(tensor)
    if step == 3 and rank == 1:
        load()
os.write(1, b"rank %d %d\\n" % (rank, tensor.sum()))  # at once: ranks share the stream
dist.destroy_process_group()
"""


@pytest.fixture(autouse=True)
def _state(monkeypatch, tmp_path):
    monkeypatch.setenv("DTDEBUG_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.delenv("DTDEBUG_RUN", raising=False)


@pytest.fixture
def folder(tmp_path):
    made = RunFolder.make(tmp_path / "runs")
    made.save_run(Run(command=("job",), started=1.0, finished=2.0, host="h", pid=1, status=1))
    return made


def run(*command, options=(), **more):
    """The real command in a process of its own."""
    return subprocess.run(
        [*DTDEBUG, "run", *options, "--", *command], capture_output=True, timeout=LIMIT, check=False, **more
    )


def python(code, *arguments, options=(), **more):
    """A job in Python."""
    return run(sys.executable, "-c", code, *arguments, options=options, **more)


def only_run():
    """The folder of the one run that there was."""
    found = recent_runs.newest()
    assert found is not None
    return found


def test_output_input_and_status_are_the_jobs():
    """Bytes of any kind, each on its stream; input reaches the job; nothing of ours where it succeeds."""
    code = (
        "import sys; data = sys.stdin.buffer.read(); sys.stdout.buffer.write(data); sys.stdout.buffer.flush();"
        "sys.stderr.buffer.write(data[::-1])"
    )
    data = bytes(range(256)) * 1000 + b"10%\r20%\r"
    done = python(code, input=data)

    assert (0, data, data[::-1]) == (done.returncode, done.stdout, done.stderr)


def test_an_exit_code_is_passed_on():
    """The job's own code, whatever it is."""
    assert python("import sys; sys.exit(7)").returncode == 7


@pytest.mark.parametrize("name", ["SIGKILL", "SIGSEGV"])
def test_death_by_a_signal_is_passed_on(name):
    """Whoever waits for us sees what it would have seen of the job."""
    done = python(f"import os, signal; os.kill(os.getpid(), signal.{name})")

    assert -getattr(signal, name) == done.returncode
    assert f"was ended by {name} and printed nothing" in " ".join(done.stderr.decode().split())


def test_the_order_of_both_streams_stays_where_they_are_one():
    """With 2>&1 lines do not overtake each other."""
    code = "import os\nfor n in range(2000): os.write(1 + n % 2, b'%d\\n' % n)"
    done = subprocess.run(
        [*DTDEBUG, "run", "--", sys.executable, "-c", code],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT, check=True,
    )  # fmt: skip

    assert [b"%d" % n for n in range(2000)] == done.stdout.split()


def test_bytes_pass_at_once():
    """A line is there while the job still runs: it ends only after we have answered."""
    code = "import os, sys; os.write(1, b'half'); print(input())"
    with subprocess.Popen(
        [*DTDEBUG, "run", "--", sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as job:
        seen = os.read(job.stdout.fileno(), 100)
        out, _ = job.communicate(b"answer\n", timeout=LIMIT)

    assert (b"half", b"answer\n") == (seen, out)


def test_a_reader_that_goes_ends_the_job_as_before():
    """`| head` ends a job that writes for ever, without a word of ours."""
    done = subprocess.run(
        ["bash", "-c", '"$@" | head -n 2; echo ${PIPESTATUS[0]}', "-", *DTDEBUG, "run", "--", "yes"],
        capture_output=True, timeout=LIMIT, check=False,
    )  # fmt: skip

    assert [b"y", b"y", b"141"] == done.stdout.split()
    assert b"the job" not in done.stderr


def test_a_job_that_can_not_be_started_is_one_line():
    """The status is a shell's; no folder stays behind."""
    missing, folder = run("no-such-command"), run("/")

    assert (127, 126) == (missing.returncode, folder.returncode)
    assert "no-such-command: command not found" in missing.stderr.decode()
    assert recent_runs.newest() is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["run"], "name the job"),
        (["run", "--hang-after", "0", "--", "true"], "more than 0"),
        (["run", "--format", "json", "--", "true"], "name a file with --output"),
        (["run", "--folder", "/proc", "--", "true"], "is not an empty folder"),
        (["attach", "no-such-run"], "neither a process nor"),
        (["attach", "999999999"], "no such process"),
        (["attach", "1", "--native", "--via", "rsh"], "invalid choice"),
        (["flight", "no-such-folder"], "no-such-folder"),
    ],
)
def test_wrong_use_is_one_line(options, words):
    """Status 2, and what to do."""
    done = subprocess.run([*DTDEBUG, *options], capture_output=True, timeout=LIMIT, check=False)

    assert 2 == done.returncode
    assert words in done.stderr.decode()
    assert 1 == done.stderr.count(b"\n")


def test_without_a_place_to_collect_the_job_runs(tmp_path, monkeypatch):
    """One line says so; output and status are the job's."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DTDEBUG_STATE", str(tmp_path / "file"))
    done = python("import sys; print('out'); sys.exit(3)")

    assert (3, b"out\n") == (done.returncode, done.stdout)
    assert 1 == done.stderr.count(b"\n")
    assert b"nothing is collected" in done.stderr


def test_a_copy_of_the_output_is_kept():
    """Each line with its stream; a file of 0600."""
    python("import sys; print('one', flush=True); print('two', file=sys.stderr); sys.exit(1)")
    log = only_run().output

    assert {"1 one", "2 two"} <= set(log.read_text().splitlines())
    assert 0o600 == stat.S_IMODE(log.stat().st_mode)


def test_the_copy_is_bounded_and_keeps_both_ends(tmp_path):
    """Head and tail of a flood; what was left out is said."""
    copy = output_store.Copy(tmp_path / "log")
    for n in range(60_000):
        copy.add(b"1 ", b"%d %s\n" % (n, b"x" * 100))
        copy.flush()
    copy.add(b"1 ", b"last")
    copy.finish()
    kept = output_store.read_copy(tmp_path / "log")

    assert kept.startswith(b"0 xxx")
    assert kept.endswith(b"\nlast\n")
    assert kept.count(b"left out here") == 1
    assert output_store.HEAD + output_store.TAIL <= len(kept) <= output_store.HEAD + 2 * output_store.TAIL


def test_a_progress_bar_that_never_ends_a_line_is_kept_as_it_was_seen_last(tmp_path):
    """However often it was drawn."""
    copy = output_store.Copy(tmp_path / "log")
    for n in range(100_000):
        copy.add(b"2 ", b"\r%d%%" % n)
    copy.finish()

    assert (tmp_path / "log").stat().st_size < 1 << 17
    assert output_store.read_copy(tmp_path / "log").endswith(b"\r99999%\n")


def test_a_full_disk_ends_only_the_copy(tmp_path):
    """The job's output goes on."""
    done = python(
        "import os\nfor n in range(300_000): os.write(1, b'line\\n')", options=["--folder", str(tmp_path / "run")],
        preexec_fn=_small_files,
    )  # fmt: skip

    assert (0, b"line\n" * 300_000) == (done.returncode, done.stdout)


def _small_files():
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))


def spawn(code, *options):
    """A job at a terminal."""
    return pexpect.spawn(
        sys.executable, ["-m", "dtdebug", "run", *options, "--", sys.executable, "-c", code],
        timeout=LIMIT, dimensions=(33, 77), encoding="utf-8",
    )  # fmt: skip


def ended(job):
    """How the program at the terminal ended: (exit status, signal)."""
    job.expect(pexpect.EOF)
    job.close()
    return job.exitstatus, job.signalstatus


@pytest.mark.terminal
def test_a_terminal_stays_a_terminal():
    """All three streams, with the size of the window and its changes."""
    job = spawn(
        "import os, signal\nsize = lambda *a: os.write(1, b'%d %d\\n' % os.get_terminal_size(1))\n"
        "signal.signal(signal.SIGWINCH, size)\nprint(*map(os.isatty, range(3)), flush=True)\nsize()\ninput()"
    )
    job.expect_exact("True True True\r\n77 33\r\n")
    job.setwinsize(20, 50)
    job.expect_exact("50 20")
    job.sendline("")

    assert (0, None) == ended(job)


@pytest.mark.terminal
def test_what_the_terminal_sends_reaches_the_job_once():
    """Ctrl-C is counted by the job; a signal to us alone is passed on once, too."""
    job = spawn(
        "import os, signal, time\ncount = 0\n"  # a print may still be under way when the next signal comes
        "def took(*a):\n    global count\n    count += 1\n    os.write(1, b'got %d\\n' % count)\n"
        "signal.signal(signal.SIGINT, took); os.write(1, b'ready\\n')\n"
        "end = time.monotonic() + 60\nwhile count < 3 and time.monotonic() < end: time.sleep(0.05)\n"
        "time.sleep(0.5); print('in all', count)"
    )
    job.expect_exact("ready")
    for n in (1, 2):
        job.sendintr()
        job.expect_exact(f"got {n}")
    time.sleep(0.5)  # two signals of one kind that wait at once are one
    os.kill(job.pid, signal.SIGINT)
    job.expect_exact("in all 3")

    assert (0, None) == ended(job)


@pytest.mark.terminal
def test_a_job_that_ctrl_c_ends_ends_us_alike():
    """The shell sees an interrupt."""
    job = spawn("import time, signal; signal.signal(2, signal.SIG_DFL); print('ready', flush=True); time.sleep(60)")
    job.expect_exact("ready")
    job.sendintr()

    assert (None, signal.SIGINT) == ended(job)


@pytest.mark.terminal
def test_ctrl_z_stops_the_job_and_fg_goes_on():
    """Job control of a shell works through us."""
    shell = pexpect.spawn("bash", ["--norc", "-i"], timeout=LIMIT, encoding="utf-8", env={**os.environ, "PS1": "> "})
    code = "import time; print('rea' + 'dy', flush=True); time.sleep(1); print('do' + 'ne', flush=True)"
    shell.sendline(f'{sys.executable} -m dtdebug run -- {sys.executable} -c "{code}"')
    shell.expect_exact("ready")
    shell.sendcontrol("z")
    shell.expect_exact("Stopped")
    shell.sendline("fg")
    shell.expect_exact("done")
    shell.sendline("exit")
    shell.expect(pexpect.EOF)
    shell.close()


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGUSR1"])
def test_a_signal_is_passed_on_once(name):
    """The job decides what becomes of it."""
    code = (
        "import signal, time\ngot = []\n"
        f"signal.signal(signal.{name}, lambda *a: got.append(1)); print('ready', flush=True)\n"
        "end = time.monotonic() + 60\nwhile not got and time.monotonic() < end: time.sleep(0.02)\n"
        "time.sleep(0.3); print(len(got))"
    )
    with subprocess.Popen([*DTDEBUG, "run", "--", sys.executable, "-c", code], stdout=subprocess.PIPE) as job:
        assert b"ready\n" == job.stdout.readline()
        job.send_signal(getattr(signal, name))
        out, _ = job.communicate(timeout=LIMIT)

    assert (0, b"1\n") == (job.returncode, out)


def test_a_signal_that_was_ignored_stays_ignored():
    """As under nohup."""
    code = "import os, signal; print(signal.getsignal(signal.SIGHUP) == signal.SIG_IGN)"
    done = python(code, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))

    assert b"True\n" == done.stdout


def test_what_outlives_the_job_may_still_write():
    """A process left in the background keeps its output, and nobody waits for it."""
    code = "import subprocess; subprocess.Popen(['bash', '-c', 'sleep 4; echo late'])"
    with subprocess.Popen([*DTDEBUG, "run", "--", sys.executable, "-c", code], stdout=subprocess.PIPE) as job:
        assert 0 == job.wait(timeout=LIMIT)
        assert b"late\n" == job.stdout.read()


def record(pid, rank, enqueued=1, completed=1, **more):
    group = Group(name="0", ranks=(0, 1), enqueued=enqueued, completed=completed)
    return RankState(pid=pid, rank=rank, world_size=2, initialized=True, groups=(group,), **more)


def test_ranks_stand_still_while_one_waits_whatever_is_printed():
    """Output is movement only where no rank waits for another."""
    busy, stuck = [record(1, 0), record(2, 1)], [record(1, 0, 5, 4), record(2, 1, 4, 4)]
    quiet, pending = Progress(0.0), Progress(0.0)
    for now in range(1, 10):
        quiet.look(busy, passed=now, now=float(now))
        pending.look(stuck, passed=now, now=float(now))

    assert 0.0 == quiet.standing(busy)
    assert 8.0 == pending.standing(stuck)
    assert pending.look([record(1, 0, 5, 5), record(2, 1, 5, 5)], 9, 10.0)


def test_a_record_that_does_not_know_its_step_is_no_movement():
    """Only full records know it; a step that differs from the last known one is movement."""
    progress = Progress(0.0)
    for now, step in ((1.0, 10), (2.0, None), (3.0, 10), (4.0, None)):
        progress.look([record(1, 0, 5, 4, step=step)], 0, now)

    assert 3.0 == progress.standing([record(1, 0, 5, 4)])
    assert progress.look([record(1, 0, 5, 4, step=11)], 0, 5.0)


def test_a_job_that_was_stopped_does_not_hang():
    """The time until it was continued does not count."""
    progress = Progress(0.0)
    stuck = [record(1, 0, 5, 4)]
    progress.look(stuck, 0, 1.0)
    progress.restart(1000.0)
    progress.look(stuck, 0, 1001.0)

    assert 1.0 == progress.standing(stuck)


def test_a_rank_waits_in_what_it_has_begun():
    """By counters, or by what it says itself."""
    assert waits(record(1, 0, 2, 1))
    assert waits(record(1, 0, pending=Operation(op="send")))
    assert not waits(record(1, 0, 2, 2))


def test_the_last_record_keeps_what_was_seen_of_its_place():
    """A rank that ends says how, not where it was before."""
    place = (Frame("train.py", 3, "step"),)
    before = [record(1, 0, stack=place), record(2, 1, stack=place)]
    state, other = merge_states(before, [record(1, 0, exception="ValueError: boom")])

    assert (place, "ValueError: boom") == (state.stack, state.exception)
    assert 1 == other.rank


def found(**more):
    where = (CallSite(1, "train.py", 3, "step"), CallSite(0, "train.py", 9, "main"), CallSite(2, "train.py", 9, "main"))
    verdict = Verdict(
        kind="dead", culprits=(1,), waiting=(0, 2), sites=where, summary="rank 1 raised \x1b[31mit", **more
    )
    return Case(verdict=verdict, notes=("a note",))


def test_a_report_says_who_where_and_who_waits():
    """Those who wait at one place are one line; terminal escapes are gone."""
    lines = report.to_text(found(confidence=0.9, evidence=("it is",)), "the job ended").splitlines()

    assert "dtdebug: rank 1 raised it" == lines[0]
    assert "  the job ended" == lines[1]
    assert "  culprit: rank 1 at train.py:3 in step" in lines
    assert "  waits: rank 0,2 at train.py:9 in main" in lines
    assert {"  confidence: 90%", "  seen: it is", "  note: a note"} <= set(lines)


def test_the_line_of_the_source_is_shown_if_it_is_here(tmp_path, monkeypatch):
    """A device or a huge file is not opened."""
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "train.py"
    script.write_text("a\nloss = f()\n")
    verdict = Verdict(
        kind="dead", culprits=(1, 2), sites=(CallSite(1, str(script), 2, "f"), CallSite(2, "/dev/zero", 1, "f"))
    )
    text = report.to_text(Case(verdict=verdict), "x")

    assert f"{script}:2 in f  | loss = f()" in text
    assert "rank 2 at /dev/zero:1 in f\n" in text


def test_an_archive_is_masked_private_and_without_dumps(folder, tmp_path, monkeypatch):
    """Links and dumps stay out, dumps unless asked for."""
    monkeypatch.chdir(tmp_path)
    folder.output.write_text("1 api_key=abcdefgh12345\n")
    (folder.flight / "rank_0").write_bytes(b"\x80\x02secret")
    (folder.stacks / "1.txt").symlink_to("/etc/hostname")
    members, left_out = report.survey(folder)
    target = report.archive(folder, members)
    with_dumps = report.archive(folder, report.survey(folder, dumps=True)[0], tmp_path / "more.tar.gz")

    assert 0o600 == stat.S_IMODE(target.stat().st_mode)
    with tarfile.open(target) as tar:
        name = folder.path.name
        assert {f"{name}/run.json", f"{name}/output.log"} == set(tar.getnames())
        assert b"1 api_key=***\n" == tar.extractfile(f"{name}/output.log").read()
    assert ["1 flight-recorder dump(s); --dumps takes them in as they are"] == left_out
    with tarfile.open(with_dumps) as tar:
        assert f"{name}/flight/rank_0" in tar.getnames()


def test_report_of_a_run_prints_the_name_of_its_archive(folder, tmp_path):
    """A second one overwrites nothing."""
    command = [*DTDEBUG, "report", str(folder.path)]
    first, second = (
        subprocess.run(command, capture_output=True, timeout=LIMIT, check=False, cwd=tmp_path) for _ in range(2)
    )

    assert (0, f"dtdebug-{folder.path.name}.tar.gz\n") == (first.returncode, first.stdout.decode())
    assert (2, b"") == (second.returncode, second.stdout)
    assert b"already exists" in second.stderr


def test_old_runs_are_forgotten(tmp_path):
    """The newest stay, and so does what lives or is not ours."""
    made = []
    for n in range(recent_runs.KEPT + 5):
        made.append(RunFolder.make())
        lives = n == 0
        made[n].save_run(Run(started=n, finished=None if lives else 1.0, host=os.uname().nodename, pid=os.getpid()))
        os.utime(made[n].path / "run.json", (n, n))
    foreign = recent_runs.parent() / "run-without-json"
    foreign.mkdir()
    recent_runs.forget_old()

    assert [made[0], *made[5:]] == [m for m in made if m.path.exists()]
    assert foreign.exists()
    assert made[0].path == recent_runs.newest().path


def test_a_folder_of_another_version_is_read_and_said(folder):
    """What is known of it is read."""
    newer = {"v": 99, "command": ["job"], "finished": 2.0, "colour": "red"}
    (folder.path / "run.json").write_text(json.dumps(newer))
    folder.save_record(record(1, 0, exception="ValueError: boom", host="elsewhere", alive=False))
    done = subprocess.run([*DTDEBUG, "attach", str(folder.path)], capture_output=True, timeout=LIMIT, check=False)

    assert 1 == done.returncode
    assert "Rank 0 raised ValueError: boom" in done.stdout.decode()
    assert "a newer version (layout 99" in " ".join(done.stdout.decode().split())


def launcher(tmp_path, fault, ranks, *options):
    """The command of a real job of gloo ranks."""
    script = tmp_path / "train.py"
    script.write_text(JOB)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    return [*torchrun, *options, str(script), fault]


def saved():
    """The verdict in the folder of the only run."""
    return msgspec.json.decode(only_run().verdict.read_bytes(), type=Case).verdict


@pytest.mark.ranks
def test_a_healthy_job_is_not_changed(tmp_path):
    """The same bytes as without us on both streams, and not a word of ours."""
    command = launcher(tmp_path, "none", 2)
    plain = subprocess.run(command, capture_output=True, timeout=LIMIT, check=False)
    done = run(*command)

    assert (0, sorted(plain.stdout.splitlines())) == (done.returncode, sorted(done.stdout.splitlines()))
    assert plain.stderr == done.stderr


def test_the_folder_of_a_run_holds_no_secret_but_what_the_job_printed():
    """In the command, in the line that raised, in the message and, without its name, behind it."""
    secret = "hunter2Zq9xWv77Lk"
    code = (
        "import sys\nimport torch.distributed as dist\nsecret = sys.argv[2]\n"
        f"raise ValueError(f'AWS_SECRET_ACCESS_KEY={{secret}} is refused; {{secret}} is wrong', 'password={secret}')\n"
    )
    alone = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "localhost", "MASTER_PORT": "1"}
    done = python(code, "--password", secret, env={**os.environ, **alone})
    found = {f.name: f.read_bytes() for f in only_run().path.rglob("*") if f.is_file()}

    assert done.returncode == 1
    assert "verdict.json" in found
    assert {name for name, data in found.items() if secret.encode() in data} == {"output.log"}
    assert not any(secret.encode() in f.read_bytes() for f in state_dir.folder().glob("*.json"))


@pytest.mark.ranks
@pytest.mark.parametrize(
    ("fault", "ranks", "words"), [("raise", 3, "raised ValueError: boom"), ("kill", 2, "was ended by SIGKILL")]
)
def test_the_rank_that_failed_is_named_and_not_its_victims(tmp_path, fault, ranks, words):
    """Status, culprit, report and record."""
    done = run(*launcher(tmp_path, fault, ranks))
    said = done.stderr.decode()

    assert 1 == done.returncode
    assert f"Rank 1 {words}" in saved().summary
    assert "dtdebug: Rank 1" in said, said[-1_500:]
    assert ("dead", (1,)) == (saved().kind, saved().culprits)
    assert f"All that was collected: {only_run().path}" in said


@pytest.mark.ranks
def test_ranks_of_an_earlier_attempt_are_told_and_not_compared(tmp_path, monkeypatch):
    """torchrun starts all ranks anew: what ended them first is a note, and they differ from the last ones by design."""
    monkeypatch.setenv("TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "1")
    said = run(*launcher(tmp_path, "raise", 2, "--max-restarts", "1")).stderr.decode()

    assert ("dead", (1,)) == (saved().kind, saved().culprits)
    assert "attempt 1 ended before and is left out: rank 1 raised ValueError: boom" in said
    assert "TORCHELASTIC_RESTART_COUNT" not in said


def attempt(number, rank, **more):
    return RankState(rank=rank, environment={"TORCHELASTIC_RESTART_COUNT": number}, **{"alive": False, **more})


@pytest.mark.parametrize("number", ["", "x", "-1", "9" * 30])
def test_an_attempt_without_a_number_is_not_left_out(number):
    """Whatever a record holds; nor is one of a rank that still runs, or that says nothing of attempts."""
    states = [attempt(number, 0, alive=True), RankState(rank=1, alive=False), attempt("1", 2)]

    assert tuple(states) == attempts(states).last


def test_the_first_error_of_each_earlier_attempt_is_told():
    """By the ranks' clocks as the collector has them."""
    early = attempt("0", 0, exception="KeyError: 1", time=5.0, clock_offset=3.0)
    first = attempt("0", 1, exception="OSError: full\x1b[31m\ndisk", time=7.0)
    found = attempts([early, first, attempt("1", 0), attempt("2", 0, alive=True)])

    assert 1 == len(found.last)
    assert ("attempt 1 ended before and is left out: rank 1 raised OSError: full disk",) == found.notes[:1]
    assert ("attempt 2 ended before and is left out",) == found.notes[1:]


@pytest.mark.parametrize(
    ("again", "printed"),
    [
        ("", "step 7"),
        ("OSError: full", "[rank1]: OSError: full\nstep 7"),  # the last attempt raised the same
    ],
)
def test_what_earlier_attempts_printed_is_no_end_of_the_last_one(again, printed):
    """Their lines keep their numbers; the launcher names ended processes."""
    early = attempt("0", 1, pid=17, exception="OSError: full\nat 3")
    output = f"step 1\n[rank1]: OSError: full\nfailed (exitcode: 1) local_rank: 1 (pid: 17) of binary\n{printed}\n"
    found = attempts([early, attempt("1", 0, alive=True), attempt("1", 1, exception=again)])

    assert f"\n\n\n{printed}\n" == found.of_last(output)
    assert output == attempts([attempt("1", 0, alive=True)]).of_last(output)


@pytest.mark.ranks
def test_a_hang_is_seen_from_outside_reported_and_ended(tmp_path):
    """The rank that does not come is named with the line where it is, by `attach` and by the run itself."""
    command = [*DTDEBUG, "run", "--hang-after", "8", "--stop-on-not-understood", "--", *launcher(tmp_path, "sleep", 2)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as job:
        assert b"asleep\n" == job.stdout.readline()
        attach = [*DTDEBUG, "attach", str(only_run().path), "--format", "json"]  # other jobs may run on this machine
        for _ in range(20):  # at first nobody has waited long enough to call it so
            seen = subprocess.run(attach, capture_output=True, timeout=LIMIT, check=False)
            if seen.returncode:
                break
        _, said = job.communicate(timeout=LIMIT)
    answer = json.loads(seen.stdout)["verdict"]

    assert (1, "not_arrived", [1]) == (seen.returncode, answer["kind"], answer["culprits"])
    assert 124 == job.returncode
    assert ("not_arrived", (1,)) == (saved().kind, saved().culprits)
    assert "time.sleep(60)" in said.decode()

    later = subprocess.run(attach, capture_output=True, timeout=LIMIT, check=False)  # its ranks are gone by now
    assert ("not_arrived", [1]) == tuple(json.loads(later.stdout)["verdict"][key] for key in ("kind", "culprits"))
    assert ("not_arrived", (1,)) == (saved().kind, saved().culprits)


def test_report_and_folder_are_where_the_user_wants_them(tmp_path):
    """The report as JSON, and nothing is printed; the folder is made, and private."""
    target, here = tmp_path / "report.json", tmp_path / "here"
    where = ["--output", str(target), "--folder", str(here)]
    done = python("import sys; sys.exit(5)", options=["--format", "json", *where])

    assert 5 == done.returncode
    assert 0o700 == stat.S_IMODE(here.stat().st_mode)
    assert (here / "verdict.json").is_file()
    assert "not_understood" == msgspec.json.decode(target.read_bytes(), type=Case).verdict.kind
    assert b"the job ended" not in done.stderr


def test_quiet_collects_and_says_nothing():
    """The folder has what was found."""
    done = python("import sys; sys.exit(5)", options=["--quiet"])

    assert b"the job ended" not in done.stderr
    assert only_run().verdict.is_file()
    assert 5 == only_run().load_run().status
