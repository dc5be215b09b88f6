"""Attacks: hostile dumps, archives and configurations, broken disks, closed streams, kills at random times.

`make attack` runs them at full length (DTDEBUG_ATTACK=1); a share of each is in every run of the tests.
"""

from __future__ import annotations

import bz2
import ctypes
import errno
import gzip
import io
import os
import random
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tarfile
import threading
import time
from pathlib import Path

import flight_data as fr
import flight_jobs as jobs
import pytest
from places import TESTS

from dtdebug.live.agent.endpoint import Endpoint
from dtdebug.recorded.flight_recorder import analyse
from dtdebug.storage import state_dir, unix_sockets

LONG = bool(os.environ.get("DTDEBUG_ATTACK"))
DUMPS, KILLS = (5_000, 200) if LONG else (80, 4)
TOGETHER = 20
"""Dumps that lie in one folder."""
PATIENCE = 120.0
MEMORY = 2 << 30
DTDEBUG = [sys.executable, "-m", "dtdebug"]
FAILED = (
    b'[rank3]: Traceback (most recent call last):\n[rank3]:   File "/a/t.py", line 3, in f\n[rank3]: ValueError: bad\n'
)


def run(*words, limit=PATIENCE, memory=MEMORY, before=None, **more):
    """The command, in its own group, with bounded memory and time."""

    def limited():
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        if before is not None:
            before()

    more.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run(
        [*DTDEBUG, *map(str, words)], capture_output=True, timeout=limit, check=False, preexec_fn=limited, **more
    )


# Dumps.


def value(rng, depth):
    """Opcodes that push one value: well formed, but nobody would write it."""
    kind = rng.randrange(14 if depth else 8)
    if kind == 0:
        return b"K" + bytes([rng.randrange(256)])
    if kind == 1:
        text = rng.choice(("entries", "pg_config", "frames", "state", "rank", "\x1b[2J", "\ud7ff", "9" * 50)).encode()
        return b"X" + struct.pack("<I", len(text)) + text
    if kind == 2:
        return rng.choice((b"N", b"\x88", b"\x89", b")", b"]", b"}", b"\x8f"))
    if kind == 3:
        return b"G" + struct.pack(">d", rng.choice((float("nan"), float("inf"), -1.0, 1e308)))
    if kind == 4:
        digits = rng.randrange(1, 200)
        return b"\x8a" + bytes([digits]) + rng.randbytes(digits)
    if kind == 5:
        return b"J" + rng.randbytes(4)
    if kind == 6:
        return rng.choice((b"cos\nsystem\n", b"cbuiltins\neval\n", b"\x8c\x02os\x8c\x06system\x93"))
    if kind == 7:
        return b"B" + struct.pack("<I", rng.choice((0, 3, 2**31))) + b"abc"
    inner = [value(rng, depth - 1) for _ in range(rng.randrange(4))]
    if kind == 8:
        return b"(" + b"".join(inner) + b"t"
    if kind == 9:
        return b"](" + b"".join(inner) + b"e"
    if kind == 10:
        return b"}(" + b"".join(inner * 2) + b"u"
    if kind == 11:
        return value(rng, depth - 1) + b"2\x86" * rng.randrange(1, 70)
    if kind == 12:
        return b"\x8f(" + b"".join(inner) + b"\x90"
    return b"(" + b"".join(inner) + rng.choice((b"R", b"o", b"b", b"\x81", b"l", b"d", b"0"))


def dump(rng):
    """A dump that is hostile in one way of many."""
    whole = b"\x80" + bytes([rng.choice((2, 3, 4, 5))]) + value(rng, rng.randrange(1, 7)) + b"."
    way = rng.randrange(6)
    if way == 0:
        return whole[: rng.randrange(len(whole))]
    if way == 1:
        place = rng.randrange(len(whole))
        return whole[:place] + rng.randbytes(3) + whole[place + 1 :]
    if way == 2:
        return b"\x80\x02" + value(rng, 3) * rng.randrange(1, 20_000) + b"."
    if way == 3:
        return b'{"entries":' + b"[" * rng.randrange(1, 200_000)
    return whole


def test_generated_dumps_cost_no_more_than_themselves(tmp_path):
    """Each folder is judged in bounded time, and the job's own dumps still name the culprit."""
    rng = random.Random(2)
    slowest = 0.0
    for _ in range(DUMPS // TOGETHER):
        fr.write(tmp_path, fr.make(jobs.one_group(), fr.Fault("skipped", (5,)))[0])
        for extra in range(TOGETHER):
            (tmp_path / f"rank_{8 + extra}").write_bytes(dump(rng))
        began = time.monotonic()
        found = analyse(tmp_path)
        slowest = max(slowest, time.monotonic() - began)

        assert 5 in found.verdict.culprits or found.verdict.kind == "not_understood", found.verdict
        shutil.rmtree(tmp_path)
        tmp_path.mkdir()
    print(f"\n{DUMPS} dumps; the slowest folder of {TOGETHER} took {slowest:.1f} s")
    assert slowest < PATIENCE


# Logs.


def packed(members):
    """A tar of (name, content or how it is made)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, content in members:
            info = tarfile.TarInfo(name)
            if isinstance(content, bytes):
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
            else:
                for key, given in content.items():
                    setattr(info, key, given)
                tar.addfile(info)
    return out.getvalue()


def header(kind, size, body=b""):
    info = tarfile.TarInfo("h")
    info.type, info.size = kind, size
    return info.tobuf(tarfile.GNU_FORMAT) + body


LOGS = {
    "rank1.log.gz": lambda: gzip.compress(b"\0" * (300 << 20), 1),
    "rank2.log.gz": lambda: gzip.compress(b"step 1\n" * 1000)[:40],
    "rank4.log.zst": lambda: b"no zstd",
    "rank5.log.xz": lambda: b"no xz",
    "rank6.log.bz2": lambda: bz2.compress(b"\0" * (64 << 20)),
    "damaged.log.gz": lambda: gzip.compress(os.urandom(9000))[:300] + b"x" * 300,
    "a.tar": lambda: b"nothing" * 300,
    "b.tgz": lambda: gzip.compress(b"nothing" * 3000),
    "c.tar": lambda: packed([
        ("../../../tmp/dtdebug-escaped/rank7.log", FAILED),
        ("link.log", {"type": tarfile.SYMTYPE, "linkname": "/etc/passwd"}),
        ("hard.log", {"type": tarfile.LNKTYPE, "linkname": "/etc/shadow"}),
        ("pipe.log", {"type": tarfile.FIFOTYPE}),
        ("a\x1b[31m\n.log", b"step 1\n"),
    ]),
    "d.tar": lambda: header(tarfile.XHDTYPE, 64 << 20, b"9" * (64 << 20)),
    "e.tar": lambda: header(tarfile.GNUTYPE_LONGNAME, 512, b"A" * 512) * 3000,
    "f.tar": lambda: header(tarfile.REGTYPE, 1 << 50, b"x" * 512),
    "names\udcff\x1b[2J.log": lambda: b"step 1\n",
    "long.log": lambda: b"x" * (20 << 20),
    "bomb.log.bz2": lambda: bz2.compress(b"x" * (300 << 20)) if LONG else b"",
}  # fmt: skip


@pytest.fixture
def logs(tmp_path):
    """A job of which one rank fails, among all that may lie in its folder."""
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "rank3.log").write_bytes(b"[rank3]: step 17\n" * 50 + FAILED)
    return folder


def test_no_file_among_the_logs_ends_or_holds_up_the_triage(logs):
    for name, made in LOGS.items():
        Path(os.fsdecode(bytes(logs) + b"/" + os.fsencode(name))).write_bytes(made())
    os.mkfifo(logs / "pipe.log")
    for name, target in (
        ("kmsg", "/proc/kmsg"),
        ("mem", "/proc/self/mem"),
        ("zero", "/dev/zero"),
        ("loop", "loop.log"),
    ):
        (logs / f"{name}.log").symlink_to(target)
    done = run("triage", logs, "--processes", "1")

    assert 1 == done.returncode, done.stderr
    assert b"Rank 3 raised ValueError: bad" in done.stdout
    assert b"\x1b" not in done.stdout + done.stderr
    assert not Path("/tmp/dtdebug-escaped").exists()


def test_what_was_read_before_a_log_breaks_off_counts(logs):
    """A job that was killed leaves such files."""
    whole = gzip.compress((logs / "rank3.log").read_bytes() + random.Random(3).randbytes(20_000).hex().encode())
    (logs / "rank3.log.gz").write_bytes(whole[:-4000])
    (logs / "rank3.log").unlink()
    done = run("triage", logs / "rank3.log.gz")

    assert b"Rank 3 raised ValueError: bad" in done.stdout
    assert b"after" in done.stdout


@pytest.mark.parametrize("what", ["pipe", "/dev/urandom", "/proc/kmsg"])
def test_what_never_ends_is_refused_in_one_line(tmp_path, what):
    path = tmp_path / "pipe" if what == "pipe" else Path(what)
    if what == "pipe":
        os.mkfifo(path)
    done = run("diagnose", path)

    assert (2, 1) == (done.returncode, done.stderr.count(b"\n")), done.stderr
    assert b"can't be read: is" in done.stderr or b"permitted" in done.stderr


@pytest.mark.parametrize(
    "words", [["doctor", "--read"], ["diagnose", "--batch"], ["check"], ["fix"], ["doctor", "--", "bash"]]
)
def test_no_command_waits_for_a_pipe_that_nobody_writes_to(tmp_path, words):
    os.mkfifo(tmp_path / "pipe.py")
    done = run(*words, tmp_path / "pipe.py")

    assert done.returncode == 2, done.stderr
    assert b"pipe.py: can't be read: is a pipe" in done.stderr


@pytest.mark.parametrize("name", ["pipe", "log.txt", "kernel-1.json"])
def test_attach_takes_no_other_file_for_that_of_a_kernel(tmp_path, name):
    if name == "pipe":
        os.mkfifo(tmp_path / name)
    else:
        (tmp_path / name).write_text('{"step": 1}')
    done = run("attach", tmp_path / name, cwd=tmp_path)

    assert (2, 1) == (done.returncode, done.stderr.count(b"\n")), done.stderr
    assert b"is neither a process nor the folder of a run" in done.stderr


@pytest.mark.parametrize("file", ["/proc/kmsg", "/proc/version"])
@pytest.mark.parametrize("command", ["join", "slow", "check", "fix"])
def test_no_command_reads_a_file_of_the_kernel(command, file):
    """/proc/kmsg waits for the next line of the kernel, for ever; what was not read is not counted."""
    done = run(command, file)
    said = [line for line in done.stderr.splitlines() if not line.endswith(b" in 0 files")]

    assert (2, 1) == (done.returncode, len(said)), done.stderr
    assert b"is a file of the kernel" in said[0] or b"permitted" in said[0]


@pytest.mark.parametrize("command", ["triage", "diagnose", "check"])
def test_a_file_that_shrinks_while_it_is_read_ends_nothing(tmp_path, command):
    file = tmp_path / "train.py"
    body = b"loss = 1.5  # [rank0]: step 17\n" * 60_000
    file.write_bytes(body)
    ended = threading.Event()

    def change():
        with file.open("rb+") as log:
            while not ended.wait(0.002):
                log.truncate(random.randrange(100))
                log.seek(0)
                log.write(body)

    changes = threading.Thread(target=change)
    changes.start()
    try:
        done = run(command, file)
    finally:
        ended.set()
        changes.join()

    assert done.returncode in (0, 1, 2), done.stderr
    assert b"internal error" not in done.stderr
    assert b"Traceback" not in done.stdout + done.stderr


def as_another_user():
    """What is not permitted is not, to root either, in the program that starts next."""
    for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
        ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP


@pytest.mark.parametrize("path", ["closed", "closed/file.py"])
@pytest.mark.parametrize(
    "command",
    ["diagnose", "report", "triage", "check", "fix", "flight", "attach", "join", "slow", "diff", "replay", "doctor"],
)
def test_what_this_user_may_not_read_is_said_in_one_line(tmp_path, command, path):
    """Not that there is nothing, and not as a failure of ours."""
    (tmp_path / "closed").mkdir()
    (tmp_path / "closed" / "file.py").write_text("print(1)")
    (tmp_path / "closed").chmod(0)
    more = {"diff": [path], "replay": ["--rank", "0"]}.get(command, ())
    words = ["--read"] if command == "doctor" else []
    try:
        done = run(command, *words, path, *more, cwd=tmp_path, before=as_another_user)
    finally:
        (tmp_path / "closed").chmod(0o700)
    said = [line for line in done.stderr.splitlines() if not line.endswith(b" in 0 files")]

    assert (2, 1) == (done.returncode, len(said)), done.stderr
    assert path.encode() in said[0]
    assert b"ermission denied" in said[0]
    assert b"internal error" not in said[0]


def test_a_configuration_can_not_hold_up_a_check(tmp_path):
    laugh = "a0: &a0 {train_batch_size: 3}\n" + "".join(
        f"a{i}: &a{i} {{{', '.join(f'k{j}: *a{i - 1}' for j in range(9))}}}\n" for i in range(1, 30)
    )
    (tmp_path / "accelerate.yaml").write_text("distributed_type: MULTI_GPU\n" + laugh)
    (tmp_path / "ds_config.json").write_text('{"train_batch_size": 1e999, "gradient_accumulation_steps": 2}')
    (tmp_path / "pyproject.toml").write_text("a" + ".a" * 50_000 + " = 1\n")
    (tmp_path / "train.py").write_text("# coding: rot13\nimport torch\n")
    (tmp_path / "good.py").write_text(
        "import torch.distributed as dist\nif dist.get_rank() == 0:\n    dist.barrier()\n"
    )
    done = run("check", tmp_path)

    assert b"DT101" in done.stdout, done.stderr
    assert b"aliases" in done.stderr
    assert b"failed itself" not in done.stderr


# Places that fail.


@pytest.fixture(scope="module")
def faults(tmp_path_factory):
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("needs g++")
    library = tmp_path_factory.mktemp("faults") / "faults.so"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-o", library, TESTS / "attack" / "faults.cpp", "-ldl"],
        check=True,
        timeout=PATIENCE,
    )
    return str(library)


@pytest.mark.parametrize("number", [errno.EIO, errno.ESTALE, errno.EACCES])
def test_a_file_that_can_not_be_read_costs_only_itself(logs, faults, number):
    (logs / "rank1.log").write_bytes(b"step 1\n" * 900)
    done = run("triage", logs, env={**os.environ, "LD_PRELOAD": faults, "DTDEBUG_FAULT": f"rank1.log:{number}"})

    assert b"Rank 3 raised ValueError: bad" in done.stdout, done.stderr
    assert os.strerror(number).encode() in done.stdout


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EIO])
def test_a_state_directory_that_fails_changes_no_byte_of_the_job(tmp_path, faults, number):
    code = "import sys\nfor n in range(2000): print('line', n)\nsys.exit(3)"
    settings = {
        **os.environ,
        "LD_PRELOAD": faults,
        "DTDEBUG_FAULT": f"{tmp_path}/state:{number}",
        "DTDEBUG_STATE": f"{tmp_path}/state",
    }
    done = run("run", "--", sys.executable, "-c", code, env=settings, memory=resource.RLIM_INFINITY)

    assert 3 == done.returncode
    assert "".join(f"line {n}\n" for n in range(2000)).encode() == done.stdout


@pytest.mark.parametrize(
    "limit", [(resource.RLIMIT_NOFILE, 12), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_STACK, 1 << 20)]
)
def test_without_resources_there_is_an_answer_or_one_line(logs, limit):
    done = run("triage", logs, before=lambda: resource.setrlimit(limit[0], (limit[1], limit[1])))

    assert done.returncode in (1, 2), done.stderr
    assert b"Traceback (most" not in done.stderr


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)])
def test_closed_streams_end_in_no_traceback(logs, closed):
    done = run("triage", logs, before=lambda: [os.close(stream) for stream in closed])

    assert b"Traceback" not in done.stderr
    assert b"internal error" not in done.stderr
    assert done.returncode in (0, 1, 2)


# State and endpoints.


def test_a_state_directory_that_others_may_enter_is_closed_or_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("DTDEBUG_STATE", str(tmp_path / "mine"))
    (tmp_path / "mine").mkdir(mode=0o755)
    for ours in ("checked.msgpack", "labs.json", "runs", "wizard.json"):
        (tmp_path / "mine" / ours).touch()
    left = tmp_path / "mine" / ".last.json.abcdefgh"
    left.write_text("half")
    os.utime(left, (1, 1))
    state_dir.home()
    said = capsys.readouterr().err
    (tmp_path / "mine" / "thesis.tex").write_text("")
    (tmp_path / "mine").chmod(0o755)

    assert 1 == said.count("\n")
    assert "is 700 now" in said
    assert not left.exists()
    with pytest.raises(PermissionError, match="holds more than"):
        state_dir.home()
    assert not state_dir.save("last.json", {})
    assert 0o755 == (tmp_path / "mine").stat().st_mode & 0o777


def test_clients_that_say_nothing_keep_no_valid_one_waiting():
    endpoint = Endpoint({"/x": lambda: b"{}"}, "token")
    host, _, port = endpoint.address.rpartition(":")
    idle = [socket.create_connection((host, int(port))) for _ in range(100)]
    try:
        began = time.monotonic()
        with socket.create_connection((host, int(port)), timeout=PATIENCE) as client:
            client.sendall(b"GET /x HTTP/1.1\r\nHost: rank\r\nAuthorization: Bearer token\r\n\r\n")
            said = client.recv(1000)
        waited = time.monotonic() - began
    finally:
        for one in idle:
            one.close()
        endpoint.shut()

    assert said.startswith(b"HTTP/1.1 200")
    assert waited < 1.9  # one of those who say nothing is waited for so long


def test_clients_that_do_not_read_keep_no_valid_one_waiting():
    endpoint = Endpoint({"/x": lambda: b"{}", "/large": lambda: bytes(32 << 20)}, "token")
    host, _, port = endpoint.address.rpartition(":")
    asked = "GET {} HTTP/1.1\r\nHost: rank\r\nAuthorization: Bearer token\r\n\r\n"
    idle = [socket.create_connection((host, int(port))) for _ in range(8)]
    try:
        for client in idle:
            client.sendall(asked.format("/large").encode())
        began = time.monotonic()
        with socket.create_connection((host, int(port)), timeout=PATIENCE) as client:
            client.sendall(asked.format("/x").encode())
            said = client.recv(1000)
        waited = time.monotonic() - began
    finally:
        for one in idle:
            one.close()
        endpoint.shut()

    assert said.startswith(b"HTTP/1.1 200")
    assert waited < 8 * 2.0  # seconds that they would take one after the other


@pytest.mark.parametrize("header", ["Origin: http://localhost", "Origin: null", "Sec-Fetch-Site: cross-site"])
def test_the_endpoint_answers_no_page_of_a_browser(header):
    endpoint = Endpoint({"/x": lambda: b"{}"}, "token")
    host, _, port = endpoint.address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=PATIENCE) as client:
            client.sendall(f"GET /x HTTP/1.1\r\nHost: rank\r\nAuthorization: Bearer token\r\n{header}\r\n\r\n".encode())
            said = client.recv(1000)
    finally:
        endpoint.shut()

    assert said.startswith(b"HTTP/1.1 403")


def test_where_a_folder_can_hold_no_socket_those_of_killed_ranks_are_removed(tmp_path):
    """Only ours that nobody serves."""
    served, dead, empty = (tmp_path / f"dtdebug-socket-{name}" for name in ("served", "dead", "empty"))
    listening = []
    for folder in (served, dead, empty):
        folder.mkdir()
    for folder in (served, dead):
        listening.append(socket.socket(socket.AF_UNIX))
        listening[-1].bind(str(folder / "s"))
        listening[-1].listen()
    listening[1].close()
    try:
        unix_sockets.sweep(tmp_path, "dtdebug-socket-", "s")
    finally:
        listening[0].close()

    assert [empty, served] == sorted(tmp_path.iterdir())


# Kills.


def test_kills_at_random_times_cost_no_byte(tmp_path):
    """The launcher is killed; what the job prints still comes, each byte once."""
    rng = random.Random(4)
    code = "import time\nfor n in range(3000):\n    print('line', n, flush=True)\n    if n % 300 == 0: time.sleep(.02)"
    expected = "".join(f"line {n}\n" for n in range(3000)).encode()
    for _ in range(KILLS):
        job = subprocess.Popen(
            [*DTDEBUG, "run", "--", sys.executable, "-c", code],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env={**os.environ, "DTDEBUG_STATE": str(tmp_path)}, start_new_session=True,
        )  # fmt: skip
        try:
            got = job.stdout.read(1)
            time.sleep(rng.random() * 0.3)
            os.kill(job.pid, signal.SIGKILL)
            got += job.stdout.read()
            job.wait(PATIENCE)
        finally:
            job.stdout.close()
            if job.poll() is None:
                os.killpg(job.pid, signal.SIGKILL)
                job.wait(PATIENCE)
        assert expected == got
