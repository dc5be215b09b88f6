"""Ranks, folders and printed text that mean harm, and surroundings that break: the user's job goes on as it would."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import msgspec
import pexpect
import pytest

from dtdebug.live.agent import arm, fatal_signals
from dtdebug.live.hosts.presence import Presence
from dtdebug.live.job import conclude, first_death, observe, output_store, recent_runs, relay, report
from dtdebug.live.job.monitor import Monitor
from dtdebug.live.job.relay import Relay
from dtdebug.live.job.reporter import Options, Speaker
from dtdebug.live.probe import ask_all_ranks, liveness
from dtdebug.live.probe.adapters import mpi
from dtdebug.recorded import flight_recorder
from dtdebug.storage import run_folder, state_dir
from dtdebug.storage.run_folder import Run, RunFolder
from dtdebug.storage.untrusted import drop_impossible, tidy
from dtdebug_taxonomy.logs import exits
from dtdebug_taxonomy.model.ranks import MOST_RANKS, Frame, Group, RankState

HERE = os.uname().nodename
DTDEBUG = [sys.executable, "-m", "dtdebug"]
LIMIT = 60
"""Seconds that nothing here may take."""
ESCAPES = "\x1b]0;owned\x07\x1b[31m\x9b2J\u202e<script>"


@pytest.fixture(autouse=True)
def _state(monkeypatch, tmp_path):
    monkeypatch.setenv("DTDEBUG_STATE", str(tmp_path / "state"))
    for name in ("DTDEBUG_RUN", "DTDEBUG_TOKEN"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def run(tmp_path):
    return RunFolder.make(tmp_path / "runs")


def started(*command, **more):
    """`dtdebug run` in a process group of its own."""
    return subprocess.Popen([*DTDEBUG, "run", "--", *command], stdout=subprocess.PIPE, start_new_session=True, **more)


def test_pipes_and_links_in_place_of_files_are_never_read(run, tmp_path):
    """A folder that others can write: a FIFO would block for ever, a link would show what is not theirs."""
    foreign = tmp_path / "foreign.json"
    foreign.write_bytes(msgspec.json.encode(RankState(rank=1, pid=7, host=HERE)))
    for path in (run.ranks / "1-x.json", run.ask, run.path / "run.json", run.path / "token", run.path / "journal"):
        os.mkfifo(path)
    (run.ranks / "2-x.json").symlink_to(foreign)
    (run.stacks / "3-x.txt").symlink_to(foreign)
    (run.stacks / "4-x.txt").mkdir()
    os.mkfifo(run.output)

    assert [] == list(run.records())
    assert 0 == run.request_count()
    assert run.load_run() is None
    assert b"" == output_store.read_copy(run.output)
    assert conclude.conclude(run, observe.last(run)).verdict.kind == "not_understood"
    for name in ("3-x.txt", "4-x.txt"):
        assert fatal_signals.offer(run.stacks / name) is None
    assert foreign.read_bytes().endswith(b"}")


@pytest.mark.parametrize(
    "absurd",
    [{"rank": 10**9}, {"rank": -5}, {"world_size": 10**9}, {"pid": -1}, {"pid": 10**30}, {"local_world_size": 2**40}],
)
def test_numbers_that_can_not_be_are_not_counted_up_to(run, absurd):
    good = RankState(rank=0, world_size=2, pid=1, host="other", alive=True)
    hostile = msgspec.structs.replace(RankState(rank=1, world_size=2, pid=2, host="other"), **absurd)
    (run.ranks / "2-x.json").write_bytes(msgspec.json.encode(hostile))
    run.save_record(good)

    (name,) = absurd
    assert all(getattr(record, name) != absurd[name] for record in run.records())
    assert 4 > len(ask_all_ranks.gather(run, timeout=0.2, dumps=False))
    found = conclude.conclude(run, observe.last(run))
    assert 3 > len(found.missing_dumps)


def test_numbers_of_a_large_job_are_kept():
    members = tuple(range(20_000))
    large = RankState(rank=19_999, world_size=20_000, groups=(Group(name="0", ranks=members),))

    assert large == drop_impossible(large)
    assert members == tidy(large).groups[0].ranks


def test_a_dump_can_not_invent_a_world(tmp_path):
    """Neither by the name of its file nor by what it gathers: a minute and gigabytes, were all ranks counted."""
    entry = {
        "process_group": ["0", ""], "collective_seq_id": 1, "profiling_name": "nccl:all_gather", "pg_id": 0,
        "input_sizes": [[4]], "output_sizes": [[10**9, 4]], "input_dtypes": ["Float"], "output_dtypes": ["Float"],
        "state": "scheduled", "frames": [], "record_id": 0, "op_id": 1, "time_created_ns": 1, "is_p2p": False,
    }  # fmt: skip
    for rank in (0, 1, 9_999_999):
        (tmp_path / f"rank_{rank}").write_bytes(msgspec.json.encode({"version": "2.5", "entries": [entry]}))
    found = flight_recorder.analyse(tmp_path)

    assert ((0, 1), ()) == (found.ranks, found.missing_dumps)


def test_a_number_of_thousands_of_digits_is_no_record(run):
    (run.ranks / "1-x.json").write_bytes(b'{"rank":%s}' % (b"9" * 5_000))
    (run.path / "run.json").write_text(json.dumps({"pid": 10**30, "host": HERE}))

    assert [] == list(run.records())
    assert not recent_runs.lives(run)


def test_what_a_record_says_reaches_no_terminal_as_it_is(run):
    hostile = RankState(
        rank=0,
        pid=1,
        host=ESCAPES,
        alive=False,
        exception=f"ValueError: {ESCAPES}",
        groups=(Group(name=ESCAPES, desc=ESCAPES, ranks=(0,)),),
        stack=(Frame(f"/{ESCAPES}.py", 10**40, ESCAPES, ESCAPES),),
        roads={ESCAPES: ESCAPES},
        facts={ESCAPES: ESCAPES, "faulthandler": "/etc/passwd"},
    )
    (run.ranks / "1-x.json").write_bytes(msgspec.json.encode(msgspec.structs.replace(hostile, stack=())))
    seen = observe.LiveRanks(states=(tidy(hostile), *observe.last(run).states), notes=(ESCAPES,))
    text = report.to_text(conclude.conclude(run, seen), ESCAPES, run)

    assert not set("\x1b\x07\x9b\u202e") & set(text)


def test_processes_of_two_hosts_with_one_number_have_two_records(run):
    for host in ("a", "b", HERE):
        run.save_record(RankState(rank=ord(host[0]), pid=7, host=host))

    assert 3 == len(list(run.records()))
    assert HERE == run.record(7).host
    assert ("a", "b") == (run.record(7, "a").host, run.record(7, "b").host)
    assert run.record(8) is None
    assert {"a", "b"} <= {s.host for s in ask_all_ranks.gather(run, timeout=0.2, dumps=False)}


def test_containers_of_one_host_have_names_of_their_own(run, monkeypatch):
    """They have the host's name and process ids of their own; from outside the record is found all the same."""
    run_folder._place.cache_clear()
    monkeypatch.setattr(os, "readlink", lambda path: "pid:[1]")
    run.save_record(RankState(rank=0, pid=7, host=HERE))
    run_folder._place.cache_clear()
    monkeypatch.undo()

    assert 0 == run.record(7).rank
    run.save_record(RankState(rank=1, pid=7, host=HERE))
    assert [0, 1] == sorted(record.rank for record in run.records())


def test_of_two_living_processes_with_one_rank_the_one_in_a_group_counts():
    """The other is a wrapper with the variables of a rank that started the trainer, and its record may be newer."""
    trainer = RankState(rank=0, pid=2, alive=True, initialized=True, time=1.0)
    wrapper = RankState(rank=0, pid=1, alive=True, time=2.0)
    ended = RankState(rank=0, pid=3, alive=False, initialized=True, time=3.0)

    assert [trainer] == ask_all_ranks.one_each([wrapper, trainer, ended])


def test_an_error_file_that_a_record_names_is_kept_only_if_it_is_one(run, tmp_path):
    """What is kept may be sent to others."""
    secret, pipe, good = tmp_path / "id", tmp_path / "pipe", tmp_path / "error.json"
    secret.write_text('{"private": "key"}')
    os.mkfifo(pipe)
    good.write_text('{"message": {"message": "boom"}}')
    deaths = liveness.Deaths(run)
    for rank, path in enumerate((secret, pipe, good, tmp_path)):
        deaths.know(
            [RankState(rank=rank, pid=2**22 + rank, host=HERE, environment={"TORCHELASTIC_ERROR_FILE": str(path)})]
        )
    deaths._keep_errors()

    assert ["2.json"] == [path.name for path in run.errors.iterdir()]


def test_what_a_record_says_ends_no_process(run):
    """Only a process that was started with this folder is ended with a job that hangs."""
    through = relay.channels()
    monitor = Monitor(run, Relay(through, run.output), Speaker(), Options(), Presence(run, []))
    for channel in through:
        os.close(channel.ours)
        os.close(channel.theirs)
    sleep = [sys.executable, "-c", "import time; print(1, flush=True); time.sleep(60)"]
    ours = {**os.environ, "DTDEBUG_RUN": str(run.path.absolute())}
    with (
        subprocess.Popen(sleep, stdout=subprocess.PIPE) as foreign,
        subprocess.Popen(sleep, stdout=subprocess.PIPE, env=ours) as own,
    ):
        for process in (foreign, own):
            process.stdout.readline()
        monitor._records = [RankState(pid=p.pid, host=HERE, alive=True) for p in (foreign, own)]
        try:
            assert [own.pid] == monitor._ours()
        finally:
            foreign.kill()
            own.kill()


def test_an_archive_holds_no_secret_and_nothing_from_elsewhere(run, tmp_path, monkeypatch):
    """Quotes that JSON escapes don't hide a secret, and a link to a folder leads nowhere."""
    monkeypatch.chdir(tmp_path)
    code = 'login(token="hunter22x", note="a")'
    run.save_record(
        RankState(rank=0, pid=1, host="h", stack=(Frame("a.py", 1, "f", code),), facts={"API_TOKEN": "abcd1234efgh"})
    )
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    (outside / "1.json").write_text('{"a": "elsewhere"}')
    run.errors.rmdir()
    run.errors.symlink_to(outside)
    (run.stacks / f"1{ESCAPES}.txt".replace("/", "")).write_bytes(b"x" * ((16 << 20) + 1))
    (run.stacks / "2.txt").write_text("secret_key=abcdefgh1234\n")
    run.output.write_text("* Authorization: Bearer abcdefghijklmnop\n")
    members, left_out = report.survey(run)
    target = report.archive(run, members)

    assert {"output.log": 1, "stacks/2.txt": 1} == {
        m.inside: m.masked for m in members if m.inside[:4] in ("outp", "stac")
    }
    assert any(m.inside.startswith("ranks/") and m.masked for m in members)
    assert not set("\x1b\x07\x9b\u202e") & set("".join(left_out))
    with tarfile.open(target) as tar:
        members = {m.name: tar.extractfile(m).read() for m in tar.getmembers()}
    assert not any("errors" in name or ".." in name or name.startswith("/") for name in members)
    whole = b"".join(members.values())
    assert not [s for s in (b"hunter22x", b"abcd1234", b"abcdefgh") if s in whole]
    record = next(data for name, data in members.items() if "/ranks/" in name)
    assert 0 == msgspec.json.decode(record, type=RankState).rank


@pytest.mark.parametrize(
    "line",
    [
        "srun: error: a: tasks " + "0-9999999," * 45 + "1: Exited with exit code 1\n",
        "[rank9999999]: Traceback (most recent call last)\n[rank9999999]: ValueError: x\n",
        "--local_rank=1" * 200 + " exits with return code = 1\n",
    ],
)
def test_printed_text_can_not_make_the_reader_grow(line):
    output = line * (500_000 // len(line))
    found = first_death.ends(output, [RankState(rank=0, pid=1)])

    assert exits._MOST >= len(exits.exits_in(output).exits)
    assert MOST_RANKS > max(s.rank for s in found.states)


def test_a_list_of_hosts_takes_time_in_proportion():
    """Forty seconds, were it tried from every letter to every letter."""
    assert ["a1", "a2", "bc"] == mpi.hosts({"SLURM_JOB_NODELIST": "a[1-2],bc"})
    assert isinstance(mpi.hosts({"SLURM_JOB_NODELIST": "a" * 65_000 + "["}), list)


def test_a_handler_that_the_program_sets_later_stays_and_is_never_called_by_us(tmp_path):
    """Schedulers ask for a checkpoint by SIGUSR1: we must neither take the handler away nor trigger it."""
    code = f"""
import signal
from pathlib import Path
from dtdebug.live.agent import fatal_signals
end = fatal_signals.offer(Path({str(tmp_path / "stack.txt")!r}))
print(fatal_signals.is_offered())
got = []
for name in (signal.SIGUSR1, signal.SIGTERM):
    signal.signal(name, lambda number, frame: got.append(number))
print(fatal_signals.is_offered())
end()
signal.raise_signal(signal.SIGUSR1); signal.raise_signal(signal.SIGTERM)
print(len(got))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=LIMIT, check=False)

    assert (0, b"True\nFalse\n2\n") == (done.returncode, done.stdout)


def test_empty_entries_of_the_path_stay(run, monkeypatch):
    """They stand for the working directory."""
    monkeypatch.setenv("PYTHONPATH", "/a:")
    assert [arm.BOOTSTRAP, "/a", ""] == arm.arming_variables(run)["PYTHONPATH"].split(":")
    monkeypatch.setenv("PYTHONPATH", "")
    assert arm.BOOTSTRAP == arm.arming_variables(run)["PYTHONPATH"]


@pytest.mark.parametrize("option", ["-S", "-I", "-E", "-sB"])
def test_options_of_python_that_hide_us_change_nothing(option):
    job = ("-c", "import sys; print(sys.flags.isolated, 'dtdebug' in sys.modules)")
    plain = subprocess.run([sys.executable, option, *job], capture_output=True, timeout=LIMIT, check=False)
    ours = subprocess.run(
        [*DTDEBUG, "run", "--", sys.executable, option, *job], capture_output=True, timeout=LIMIT, check=False
    )

    assert (plain.returncode, plain.stdout, plain.stderr) == (ours.returncode, ours.stdout, ours.stderr)


@pytest.mark.parametrize("name", ["sitecustomize", "usercustomize"])
def test_a_customisation_that_fails_says_so_as_ever(tmp_path, name, monkeypatch):
    (tmp_path / f"{name}.py").write_text("raise ValueError('mine')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    job = [sys.executable, "-c", "print('ran')"]
    plain = subprocess.run(job, capture_output=True, timeout=LIMIT, check=False)
    ours = subprocess.run([*DTDEBUG, "run", "--", *job], capture_output=True, timeout=LIMIT, check=False)

    assert (plain.returncode, plain.stdout) == (ours.returncode, ours.stdout)
    assert plain.stderr in ours.stderr  # our own Python reads it, too


@pytest.mark.parametrize(
    "does",
    [
        "os.environ.clear()",
        "d = tempfile.mkdtemp(); os.chdir(d); os.rmdir(d)",
        "shutil.rmtree(os.environ['DTDEBUG_RUN'], ignore_errors=True)",
        "resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))",
        "sys.meta_path[:] = sys.meta_path[1:]",
        "os.close(1); os.close(2)",
    ],
)
def test_whatever_a_rank_does_its_end_is_its_own(does, monkeypatch):
    """As a rank: the agent is in it and has lost what it stands on."""
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "1")
    code = (
        f"import os, resource, shutil, sys, tempfile, time\n{does}\ntime.sleep(0.7)\nos.environ['X'] = 'x'\nsys.exit(3)"
    )
    done = subprocess.run(
        [*DTDEBUG, "run", "--", sys.executable, "-c", code], capture_output=True, timeout=LIMIT, check=False
    )

    assert 3 == done.returncode
    assert b"" == done.stdout
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("closed", ["<&-", "2>&-", ">&-", "<&- >&- 2>&-"])
def test_closed_streams_stay_closed_and_the_job_runs(closed, tmp_path):
    word = (
        f"{sys.executable} -m dtdebug run -- sh -c 'echo x > {tmp_path}/ran; [ -e /proc/self/fd/0 ]; exit 7' {closed}"
    )
    assert 7 == subprocess.run(["sh", "-c", word], capture_output=True, timeout=LIMIT, check=False).returncode
    assert (tmp_path / "ran").exists()


def test_without_standard_input_the_output_goes_on():
    word = f"{sys.executable} -m dtdebug run -- sh -c 'echo one; sleep 0.3; echo two' <&-"
    done = subprocess.run(["sh", "-c", word], capture_output=True, timeout=LIMIT, check=False)

    assert (0, b"one\ntwo\n") == (done.returncode, done.stdout)


def test_a_script_without_a_first_line_is_run_as_by_a_shell(tmp_path):
    script = tmp_path / "job"
    script.write_text('exit "$1"\n')
    script.chmod(0o700)

    assert 5 == subprocess.run([*DTDEBUG, "run", "--", script, "5"], timeout=LIMIT, check=False).returncode


def test_every_byte_passes_whatever_it_is():
    code = "import os, sys; b = bytes(range(256)) * 4096; [sys.stdout.buffer.write(b) for _ in range(32)]"
    done = subprocess.run(
        [*DTDEBUG, "run", "--", sys.executable, "-c", code], capture_output=True, timeout=LIMIT, check=False
    )

    assert bytes(range(256)) * 4096 * 32 == done.stdout


@pytest.mark.parametrize("to", ["group", "us"])
def test_a_signal_reaches_the_job_once_whoever_it_was_sent_to(to):
    """A launcher that is told to end while it ends its ranks leaves them behind."""
    code = (
        "import signal, time\ngot = []\nsignal.signal(signal.SIGTERM, lambda *a: got.append(1))\n"
        "print('ready', flush=True)\nend = time.monotonic() + 30\n"
        "while not got and time.monotonic() < end: time.sleep(0.01)\ntime.sleep(0.5); print(len(got), flush=True)\n"
    )
    with started(sys.executable, "-c", code) as job:
        assert b"ready\n" == job.stdout.readline()
        (os.killpg if to == "group" else os.kill)(job.pid, signal.SIGTERM)
        out, _ = job.communicate(timeout=LIMIT)

    assert (0, b"1\n") == (job.returncode, out)


def test_a_job_that_leaves_a_daemon_is_not_waited_for():
    """The daemon keeps the stream of the job."""
    with started("sh", "-c", "sleep 50 & echo $!; exit 3") as job:
        daemon = int(job.stdout.readline())
        try:
            assert 3 == job.wait(LIMIT / 2)
            os.kill(daemon, 0)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(daemon, signal.SIGKILL)


@pytest.mark.terminal
def test_an_impatient_user_ends_the_collecting_at_once(tmp_path):
    """Ctrl-C, again and again: one line, no traceback of ours, the status of the job."""
    code = "import time\nprint('ready', flush=True)\ntime.sleep(60)"
    job = pexpect.spawn(sys.executable, ["-m", "dtdebug", "run", "--", sys.executable, "-c", code], timeout=LIMIT)
    job.expect_exact("ready")
    end = time.monotonic() + LIMIT
    while job.isalive() and time.monotonic() < end:
        with contextlib.suppress(OSError):
            job.sendintr()
        time.sleep(0.05)
    said = job.read()
    job.close()

    assert signal.SIGINT == job.signalstatus
    assert b"dtdebug/cli/" not in said


def test_a_folder_that_others_could_write_is_closed_to_them(tmp_path):
    open_to_all = tmp_path / "shared"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    recent_runs.take(open_to_all, ["true"])

    assert 0o700 == open_to_all.stat().st_mode & 0o777


def test_files_are_private_whatever_the_mask(run):
    before = os.umask(0)
    try:
        os.close(state_dir.append(run.stack(1)))
        run.save_run(Run())
        run.save_record(RankState(rank=0, pid=1))
        arm.arming_variables(run)
    finally:
        os.umask(before)

    files = [path for path in run.path.rglob("*") if path.is_file()]
    assert 4 == len(files)
    assert {0o600} == {path.stat().st_mode & 0o777 for path in files}
    assert not [path for path in files if os.environ.get("DTDEBUG_TOKEN", "\0") in Path(path).read_text()]
