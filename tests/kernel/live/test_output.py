"""The copy of what a job prints never makes the job wait, whatever the disk does; what is not kept is counted."""

import os
import re
import signal
import subprocess
import sys

import pytest

from dtdebug.live.job import output_store
from dtdebug.live.job.ring_buffer import Ring

LIMIT = 90
PATCHED = """
import sys, tempfile, time
from dtdebug.live.job import run_job as launch, output_store as output
{patch}
sys.argv[0] = "dtdebug"
from dtdebug.cli.main import run
run()
"""
SLOW_WRITES = "real = output.Copy.flush\noutput.Copy.flush = lambda copy: (time.sleep(4), real(copy))"
HUNG = "launch._DISK = 0.5\ntempfile.mkdtemp = lambda **_: time.sleep(5)"


@pytest.fixture(autouse=True)
def _state(monkeypatch, tmp_path):
    monkeypatch.setenv("DTDEBUG_STATE", str(tmp_path / "state"))
    monkeypatch.delenv("DTDEBUG_RUN", raising=False)


def run(code, patch="", **more):
    command = [sys.executable, "-c", PATCHED.format(patch=patch), "run", "--", sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, timeout=LIMIT, check=False, **more)


def test_what_is_taken_in_time_comes_whole_and_in_order():
    """Across the end of the head and around the ring, pieces of any size."""
    ring = Ring(1000, 1 << 18)
    for n in range(3000):
        piece = bytes([n % 251]) * (n % 700)
        ring.put(n % 3, memoryview(piece))

        assert (n % 3, piece) == ring.take()
    assert ring.take() is None
    assert 0 == ring.lost


def test_what_is_not_taken_in_time_is_the_oldest_after_the_head_and_is_counted():
    ring, pieces = Ring(4096, 1 << 18), [b"%06d" % n * 20 for n in range(10_000)]
    for piece in pieces:
        ring.put(0, memoryview(piece))
    taken = [found[1] for found in iter(ring.take, None)]
    kept_first = next(n for n, (a, b) in enumerate(zip(taken, pieces, strict=False)) if a != b)

    assert pieces[:kept_first] == taken[:kept_first]
    assert kept_first * 125 <= 4096 < (kept_first + 1) * 125
    assert pieces[len(pieces) - len(taken) + kept_first :] == taken[kept_first:]
    assert (len(pieces) - len(taken)) * 125 == ring.lost
    assert sum(map(len, taken)) > (1 << 18) - (1 << 17)


def test_gaps_that_fall_into_what_is_left_out_stay_counted(tmp_path):
    """One remark stands for all that is missing in the middle."""
    copy = output_store.Copy(tmp_path / "log")
    for n in range(60):
        copy.add(b"1 ", (b"%d " % n + b"x" * 90 + b"\n") * 1000)
        copy.lose(10**9)
        copy.flush()
    copy.finish()
    text = (tmp_path / "log").read_bytes()
    counts = [int(count) for count in re.findall(rb"(?m)^~ \[dtdebug: about (\d+) bytes", text)]

    assert 60 * 10**9 <= sum(counts) < 60 * 10**9 + 60 * 100_000
    assert text.startswith(b"1 0 xx")
    assert 1000 == text.count(b"\n1 59 xx")


def test_a_disk_that_takes_seconds_for_each_write_keeps_no_byte_back():
    """What comes faster than it can be written goes through all the same; the report says how much is not kept."""
    code = "import os, sys\nfor n in range(300): os.write(1, b'%d ' % n * 20_000 + b'\\n')\nsys.exit(3)"
    done = run(code, SLOW_WRITES)

    assert 3 == done.returncode
    assert b"".join(b"%d " % n * 20_000 + b"\n" for n in range(300)) == done.stdout
    text = b" ".join(done.stderr.split())
    said = re.search(rb"Note ([\d,]+) bytes of what the job printed were not kept: they came faster", text)
    assert said, done.stderr.decode()
    assert 0 < int(said[1].replace(b",", b"")) <= len(done.stdout)


def test_a_disk_that_does_not_answer_costs_only_what_would_be_collected():
    done = run("print('out'); raise SystemExit(5)", HUNG)

    assert (5, b"out\n") == (done.returncode, done.stdout)
    assert b"nothing is collected: the disk does not answer" in done.stderr


def test_a_full_disk_is_said_with_what_is_missing():
    def small_files():
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    done = run("import os\nfor n in range(30_000): os.write(1, b'%09d\\n' % n)\nos._exit(3)", preexec_fn=small_files)

    assert b"".join(b"%09d\n" % n for n in range(30_000)) == done.stdout
    text = b" ".join(done.stderr.split())
    assert re.search(rb"Note [\d,]+ bytes of what the job printed were not kept: File too large", text)


def ignoring():
    """As below nohup, cron or a script's `&`."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


NOHUP = {"preexec_fn": ignoring, **dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)}


@pytest.mark.parametrize("name", ["SIGINT", "SIGHUP"])
def test_a_signal_that_was_ignored_reaches_a_job_that_has_come_to_handle_it(name):
    """As launchers do; once, and the job goes on to its own end."""
    code = (
        "import os, signal, time\ngot = []\n"
        f"print(signal.getsignal(signal.{name}) == signal.SIG_IGN, flush=True)\n"
        f"signal.signal(signal.{name}, lambda *a: got.append(1)); print('ready', flush=True)\n"
        "end = time.monotonic() + 60\nwhile not got and time.monotonic() < end: time.sleep(0.02)\n"
        "time.sleep(0.3); print(len(got), flush=True); os._exit(3)"
    )
    command = [sys.executable, "-m", "dtdebug", "run", "--", sys.executable, "-c", code]
    with subprocess.Popen(command, **NOHUP) as job:
        assert b"True\n" == job.stdout.readline()
        assert b"ready\n" == job.stdout.readline()
        job.send_signal(getattr(signal, name))
        out, _ = job.communicate(timeout=LIMIT)

    assert (3, b"1\n") == (job.returncode, out)


def test_a_job_of_cron_is_explained(tmp_path):
    """No home, no terminal, hardly any environment, another folder."""
    job = subprocess.run(
        [sys.executable, "-m", "dtdebug", "run", "--", sys.executable, "-c", "raise ValueError('planted')"],
        env={"PATH": "/usr/bin:/bin", "DTDEBUG_STATE": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)},
        cwd="/", start_new_session=True,
        stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT, check=False,
    )  # fmt: skip

    assert (1, b"") == (job.returncode, job.stdout)
    assert f"\nAll that was collected: {tmp_path}/runs/".encode() in job.stderr


def test_what_a_scheduler_sends_to_all_processes_of_a_step_comes_once():
    """SIGUSR1 to save a checkpoint, then SIGTERM, which the job answers with an end of its own."""
    code = (
        "import signal, sys, time\ngot = []\n"
        "for name in (signal.SIGUSR1, signal.SIGTERM):\n    signal.signal(name, lambda s, _: got.append(s))\n"
        "print('ready', flush=True)\nuntil = time.monotonic() + 60\n"
        "def wait(name):\n    while name not in got and time.monotonic() < until: time.sleep(.02)\n    time.sleep(.5)\n"
        "wait(signal.SIGUSR1); print('saved', flush=True)\n"
        "wait(signal.SIGTERM); print(*map(int, got), flush=True); sys.exit(7)"
    )
    command = [sys.executable, "-m", "dtdebug", "run", "--", sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True) as job:
        assert b"ready\n" == job.stdout.readline()
        os.killpg(job.pid, signal.SIGUSR1)
        assert b"saved\n" == job.stdout.readline()
        os.killpg(job.pid, signal.SIGTERM)
        out, _ = job.communicate(timeout=LIMIT)

    assert (7, f"{signal.SIGUSR1:d} {signal.SIGTERM:d}\n".encode()) == (job.returncode, out)


def test_a_signal_that_the_job_ignores_interrupts_nothing():
    """Neither the job nor what is said of its end."""
    code = "import os; print(os.getppid(), flush=True); input(); os._exit(3)"
    command = [sys.executable, "-m", "dtdebug", "run", "--", sys.executable, "-c", code]
    with subprocess.Popen(command, **NOHUP) as job:
        assert job.pid == int(job.stdout.readline())
        os.kill(job.pid, signal.SIGINT)
        os.kill(job.pid, signal.SIGHUP)
        _, said = job.communicate(b"\n", timeout=LIMIT)

    assert 3 == job.returncode
    assert b"dtdebug: The command ended with exit status 3" in said
    assert b"interrupted" not in said


def test_the_copy_keeps_lines_of_the_middle_that_are_unlike_the_others(tmp_path):
    """An error long before the end, once, and what is left out is counted once."""
    copy = output_store.Copy(tmp_path / "output")
    for n in range(200_000):
        copy.add(b"1 ", b"step %d fine loss 0.%d\n" % (n, n))
        if n == 60_000:
            copy.add(b"2 ", b"[rank3]: RuntimeError: boom\n")
        if n % 1_000 == 0:
            copy.flush()
    copy.finish()
    kept = output_store.read_copy(tmp_path / "output")

    assert (kept.count(b"boom"), kept.count(b"left out")) == (1, 1)
    assert len(kept) <= output_store.HEAD + output_store.MIDDLE + 2 * output_store.TAIL
