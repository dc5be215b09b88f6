"""Ranks on other hosts: commands that are shown before they are run, and the addresses in the job's own store."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

import pytest

from dtdebug.live.agent import arm
from dtdebug.live.probe import ask_all_ranks, other_hosts, pyspy, remote_commands
from dtdebug.storage.run_folder import RunFolder
from dtdebug_taxonomy.model.ranks import RankState

FAKE_SSH = """#!/bin/sh
while [ "$1" != "--" ]; do host="$last"; last="$1"; shift; done
shift
[ "$last" = lost ] && { echo "ssh: connect to host lost port 22: Connection refused" >&2; exit 255; }
[ "$last" = slow ] && sleep 30
echo "Welcome to [$last]"
exec sh -c "$*"
"""


@pytest.fixture
def ssh(tmp_path, monkeypatch):
    """A program named ssh that runs the command here, as a remote shell would."""
    program = tmp_path / "bin" / "ssh"
    program.parent.mkdir()
    program.write_text(FAKE_SSH)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")


def printing(data):
    return [sys.executable, "-c", "import sys; sys.stdout.write(sys.argv[1])", data]


def test_commands_are_shown_as_one_line_that_a_shell_would_read_alike():
    words = ["dtdebug", "attach", "--format", "json", "/runs/it's $HOME; rm"]
    assert words == remote_commands.attach("/runs/it's $HOME; rm")
    ssh = remote_commands.over_ssh("node-7", words)
    assert ("ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=5", "node-7", "--") == ssh.words[:-1]
    assert """dtdebug attach --format json '/runs/it'"'"'s $HOME; rm'""" == ssh.words[-1]
    assert "srun --overlap --jobid=12 --nodelist=node-7" in str(
        remote_commands.over_srun("12", "node-7", remote_commands.stack(5))
    )
    assert ("--", "py-spy", "dump", "--json", "--nonblocking", "--pid", "5") == remote_commands.over_kubectl(
        "trainer-0", remote_commands.stack(5), namespace="ml", container="main"
    ).words[-7:]
    assert "kubectl exec pod --namespace ml -- x" == str(remote_commands.over_kubectl("pod", ["x"], namespace="ml"))


@pytest.mark.parametrize("name", ["-oProxyCommand=touch x", "", "a b", "a;b", "$(a)", "a\nb"])
def test_what_is_no_name_is_refused(name):
    for build in (lambda: remote_commands.over_ssh(name, ["x"]), lambda: remote_commands.over_srun("1", name, ["x"])):
        with pytest.raises(ValueError, match="is not the name of a host, job or pod"):
            build()


def test_states_come_back_from_several_hosts_and_a_lost_one_is_noted(ssh):
    one = json.dumps({"v": 1, "ranks": [{"rank": 0, "host": "a", "exception": "\x1b[31mred's"}]})
    two = json.dumps([{"rank": 1}])
    commands = [
        remote_commands.over_ssh("a", printing(one)),
        remote_commands.over_ssh("b", printing(two)),
        remote_commands.over_ssh("lost", printing(two)),
    ]
    states, notes = remote_commands.run(commands, timeout=20)
    assert [(0, "a", "red's"), (1, "b", "")] == [(state.rank, state.host, state.exception) for state in states]
    assert [{"ssh": "ok"}] * 2 == [state.roads for state in states]
    assert ["lost: exit status 255: ssh: connect to host lost port 22: Connection refused"] == notes


@pytest.mark.parametrize(
    ("script", "note"),
    [
        ("print('{]')", "something other than the JSON of ranks"),
        ('print(\'[{"rank": "a"}]\')', "something other than the JSON of ranks"),
        ("import sys; sys.exit('no such run')", "exit status 1: no such run"),
        ("", "exit status 0: it said nothing"),
        ("while True: print('x' * 1000000)", "printed more than"),
    ],
)
def test_a_host_that_answers_garbage_is_noted(ssh, monkeypatch, script, note):
    monkeypatch.setattr(remote_commands, "_LIMIT", 1 << 20)
    command = remote_commands.RemoteCommand(where="a", words=(sys.executable, "-c", script))
    states, (said,) = remote_commands.run([command], timeout=20)
    assert [] == states
    assert note in said


def test_a_host_that_does_not_answer_is_given_up(ssh):
    states, (note,) = remote_commands.run([remote_commands.over_ssh("slow", printing("[]"))], timeout=0.5)
    assert [] == states
    assert note.startswith("slow: no answer in 0.5")
    states, (note,) = remote_commands.run(
        [remote_commands.RemoteCommand(where="x", words=("no-such-program-1",))], timeout=5
    )
    assert "x: no-such-program-1 can't be started: No such file or directory" == note


@pytest.mark.skipif(pyspy._program() is None, reason="py-spy is not installed")
def test_a_stack_comes_from_a_host_without_dtdebug(ssh):
    process = subprocess.Popen(
        [sys.executable, "-c", "import time\ndef waits():\n    time.sleep(60)\nprint(1, flush=True)\nwaits()"],
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    process.stdout.readline()
    try:
        words = remote_commands.stack(process.pid, program=[pyspy._program()])
        (state,), notes = remote_commands.run([remote_commands.over_ssh("a", words, pid=process.pid)], timeout=20)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    assert [] == notes
    assert (process.pid, "waits") == (state.pid, state.stack[-1].function)


def test_a_store_that_is_gone_is_said_to_be_gone():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(other_hosts.StoreError, match=r"no store at 127\.0\.0\.1:\d+ any more"):
        other_hosts.addresses("127.0.0.1", port)


def test_what_is_no_store_is_given_up_and_noted_with_the_ranks_that_lack(tmp_path, monkeypatch):
    monkeypatch.setenv("DTDEBUG_STATE", str(tmp_path))
    folder = RunFolder.make(tmp_path)
    folder.save_record(RankState(rank=0, world_size=2, host="elsewhere", pid=5))
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        states = ask_all_ranks.gather(
            folder,
            timeout=2.0,
            addresses=lambda: other_hosts.addresses("127.0.0.1", port, python=sys.executable, timeout=1.0),
        )
    assert [0, 1] == [state.rank for state in states]
    assert "did not answer within 1 s" in states[1].roads["store"] or "can't be read" in states[1].roads["store"]


def test_a_python_without_torch_or_without_a_file_is_said(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(other_hosts.StoreError, match="can't be started"):
            other_hosts.addresses("127.0.0.1", port, python=str(tmp_path / "python"))
        with pytest.raises(other_hosts.StoreError, match="holds something else"):
            other_hosts.addresses("127.0.0.1", port, python=shutil.which("true"))


def test_the_place_of_the_store_is_in_the_environment():
    assert ("node-0", 29500) == other_hosts.store_address({"MASTER_ADDR": "node-0", "MASTER_PORT": "29500"})
    assert None is other_hosts.store_address({"MASTER_ADDR": "node-0", "MASTER_PORT": "http"})
    assert "/opt/python3.12" == other_hosts.python_of(("/opt/python3.12", "a.py"), {})
    assert sys.executable == other_hosts.python_of(("torchrun",), {"VIRTUAL_ENV": "/nowhere"})


KEEPS_STORE = """
import sys, time
from torch.distributed import PrefixStore, TCPStore
store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
PrefixStore("/worker/attempt_0", store).set("dtdebug/0", "127.0.0.1:1")
PrefixStore("default_pg", PrefixStore("/worker/attempt_1", store)).set("dtdebug/0", "127.0.0.1:2")
PrefixStore("/worker/attempt_1", store).set("dtdebug/3", "127.0.0.1:3")
store.set("dtdebug/x", "no rank")
print(store.port, flush=True)
time.sleep(60)
"""


@pytest.mark.ranks
@pytest.mark.parametrize(
    "script", [other_hosts._SCRIPT, other_hosts._SCRIPT.replace("store.list_keys()", "store.unknown()")]
)
def test_addresses_are_read_from_the_jobs_store_by_the_latest_attempt(monkeypatch, script):
    pytest.importorskip("torch")
    monkeypatch.setattr(other_hosts, "_SCRIPT", script)
    process = subprocess.Popen(
        [sys.executable, "-c", KEEPS_STORE], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        port = int(process.stdout.readline())
        found = other_hosts.addresses("127.0.0.1", port, world=4, timeout=60)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    assert {0: "127.0.0.1:2", 3: "127.0.0.1:3"} == found


IN_NAMESPACE = """
import torch, torch.distributed as dist
dist.init_process_group("gloo")
print("ready", flush=True)
if dist.get_rank() == 0:
    dist.all_reduce(torch.ones(2))
else:
    input()
"""
SPACES = {"dtdebug-test-a": "10.213.7.1", "dtdebug-test-b": "10.213.7.2"}


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=10)


@pytest.fixture
def hosts():
    """Two network namespaces with a cable between: as two hosts, to all that speaks TCP."""
    try:
        for space in SPACES:
            ip("netns", "add", space)
        ip(
            "link",
            "add",
            "dtdebug-a",
            "netns",
            "dtdebug-test-a",
            "type",
            "veth",
            "peer",
            "dtdebug-b",
            "netns",
            "dtdebug-test-b",
        )
        for space, end in zip(SPACES, ("dtdebug-a", "dtdebug-b"), strict=True):
            ip("-n", space, "addr", "add", f"{SPACES[space]}/24", "dev", end)
            ip("-n", space, "link", "set", "lo", "up")
            ip("-n", space, "link", "set", end, "up")
        yield list(SPACES)
    except (OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"network namespaces can't be made: {getattr(error, 'stderr', b'') or error}")
    finally:
        for space in SPACES:
            with contextlib.suppress(OSError, subprocess.SubprocessError):
                ip("netns", "del", space)


@pytest.mark.ranks
def test_a_rank_in_another_network_is_found_through_the_jobs_store(hosts, tmp_path, monkeypatch):
    """Each rank has a folder of its own, as on hosts that share no disk; `attach --store` looks from the first."""
    pytest.importorskip("torch")
    monkeypatch.setenv("DTDEBUG_STATE", str(tmp_path))
    monkeypatch.setenv("DTDEBUG_TOKEN", "of this job")
    folders = [RunFolder.make(tmp_path) for _ in hosts]
    master, port = SPACES[hosts[0]], "29613"
    ranks = []
    try:
        for rank, (space, folder) in enumerate(zip(hosts, folders, strict=True)):
            environment = (
                os.environ
                | arm.arming_variables(folder)
                | {
                    "RANK": str(rank),
                    "WORLD_SIZE": "2",
                    "MASTER_ADDR": master,
                    "MASTER_PORT": port,
                    "GLOO_SOCKET_IFNAME": f"dtdebug-{'ab'[rank]}",
                    "DTDEBUG_BIND": SPACES[space],
                    "OMP_NUM_THREADS": "1",
                }
            )
            ranks.append(
                subprocess.Popen(
                    ["ip", "netns", "exec", space, sys.executable, "-c", IN_NAMESPACE],
                    env=environment,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
            )
        assert [b"ready\n"] * 2 == [rank.stdout.readline() for rank in ranks]
        announced(folders)
        look = [sys.executable, "-m", "dtdebug", "attach", str(folders[0].path), "--format", "json"]
        looked = subprocess.run(
            ["ip", "netns", "exec", hosts[0], *look, "--store", f"{master}:{port}"],
            capture_output=True,
            check=False,
            timeout=60,
        )
    finally:
        for rank in ranks:
            with contextlib.suppress(OSError):
                os.killpg(rank.pid, signal.SIGKILL)
            rank.communicate()
    answer = json.loads(looked.stdout)
    first, second = answer["ranks"]
    assert (1, "not_arrived", [1]) == (looked.returncode, answer["verdict"]["kind"], answer["verdict"]["culprits"])
    assert ([], []) == (answer["unanswered"], answer["commands"])
    assert ("all_reduce", "ok") == (first["pending"]["op"], first["roads"]["endpoint"])
    assert ([0, 1], "ok", True) == ([first["rank"], second["rank"]], second["roads"]["endpoint"], second["alive"])


def announced(folders):
    """Waits until both agents have a group; their addresses are in the store a moment later."""
    end = time.monotonic() + 40
    while time.monotonic() < end:
        if all(any(record.initialized for record in folder.records()) for folder in folders):
            time.sleep(1.0)
            return
        time.sleep(0.05)
    pytest.fail("the agents wrote no records")
