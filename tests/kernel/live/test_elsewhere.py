"""`dtdebug attach` and ranks on other hosts: what asks there is shown, and run only when that is asked for."""

import json
import os
import re
import signal
import socket
import subprocess
import sys

import pytest

from dtdebug.live.probe import other_hosts, pyspy
from dtdebug.live.probe.not_a_rank import stranger
from dtdebug.storage.run_folder import RunFolder
from dtdebug_taxonomy.model.ranks import Frame, RankState

DTDEBUG = [sys.executable, "-m", "dtdebug"]
FAKE_SSH = """#!/bin/sh
while [ "$1" != "--" ]; do host="$last"; last="$1"; shift; done
shift
echo "$last" >> "$(dirname "$0")/asked"
[ "$last" = lost ] && { echo "ssh: connect to host lost port 22: Connection refused" >&2; exit 255; }
exec sh -c "$*"
"""
RANK = """
import time
def waits():
    time.sleep(120)
print("ready", flush=True)
waits()
"""


@pytest.fixture(autouse=True)
def _state(monkeypatch, tmp_path):
    monkeypatch.setenv("DTDEBUG_STATE", str(tmp_path / "state"))
    monkeypatch.delenv("DTDEBUG_RUN", raising=False)


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """The hosts that a program named ssh was called for; it runs the command here, as a remote shell would."""
    program = tmp_path / "bin" / "ssh"
    program.parent.mkdir()
    program.write_text(FAKE_SSH)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    log = program.parent / "asked"
    return lambda: sorted(log.read_text().split()) if log.exists() else []


@pytest.fixture
def ranks():
    """Starts a process that is a rank by its environment; its process id."""
    started = []

    def start(rank, world=2, **variables):
        environment = os.environ | {"RANK": str(rank), "WORLD_SIZE": str(world), **variables}
        started.append(
            subprocess.Popen(
                [sys.executable, "-c", RANK], env=environment, stdout=subprocess.PIPE, start_new_session=True
            )
        )
        assert b"ready\n" == started[-1].stdout.readline()
        return started[-1].pid

    yield start
    for process in started:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def attach(*options):
    return subprocess.run([*DTDEBUG, "attach", *map(str, options)], capture_output=True, timeout=90, check=False)


HERE = f"--program={sys.executable} -m dtdebug"
WITH_CHILD = """
import multiprocessing, time
def waits(name):
    time.sleep(120)
child = multiprocessing.get_context("fork").Process(target=waits, args=("child",))
child.start()
print(child.pid, flush=True)
waits("rank")
"""


def test_a_rank_that_was_not_found_is_named_with_what_would_ask_for_it_and_nothing_is_run(ranks, asked):
    pid = ranks(0)
    said = attach(pid).stdout.decode()
    assert "Next no answer of rank 1: --host NAME names another host where it may be" in " ".join(said.split())
    elsewhere = ["--host", "node-7=12", "--host", "node-8"]
    short, said = (attach(pid, *elsewhere, *more).stdout.decode() for more in ((), ("--full",)))
    asks = "no answer of rank 1; to ask on other hosts (and 1 more, see --full) (--go runs this):"
    assert asks in " ".join(short.split())
    assert "      ssh -o BatchMode=yes -o ConnectTimeout=5 node-7 -- 'dtdebug attach --format json 12'\n" in short
    ssh = "    ssh -o BatchMode=yes -o ConnectTimeout=5"
    assert "no answer of rank 1\n  to ask on other hosts (--go runs this):" in said
    assert f"{ssh} node-7 -- 'dtdebug attach --format json 12'\n" in said
    assert f"{ssh} node-8 -- 'dtdebug attach --format json'\n" in said
    assert [] == asked()


def test_go_asks_the_hosts_and_takes_their_ranks_into_the_answer(ranks, asked):
    here, there = ranks(0), ranks(1)
    done = attach(here, "--host", f"node-7={there}", "--host", "lost", "--go", HERE, "--format", "json")
    answer = json.loads(done.stdout)
    assert ["lost", "node-7"] == asked()
    assert [(0, here), (1, there)] == [(rank["rank"], rank["pid"]) for rank in answer["ranks"]]
    assert "ok" == answer["ranks"][1]["roads"]["ssh"]
    assert ([], []) == (answer["unanswered"], answer["commands"])
    assert "lost: exit status 255: ssh: connect to host lost port 22: Connection refused" in answer["notes"]


def test_what_another_job_answers_is_left_out(ranks, asked):
    here, there = ranks(0), ranks(1, MASTER_PORT="2", world=4)
    answer = json.loads(attach(here, "--host", f"node-7={there}", "--go", HERE, "--format", "json").stdout)
    assert [1] == answer["unanswered"]
    assert [0, 1] == [rank["rank"] for rank in answer["ranks"]]
    assert any("is of another job" in note for note in answer["notes"])


def test_wrong_use_is_one_line_and_runs_nothing(ranks, asked):
    rank = ranks(0)
    for options, words in (
        (["--via", "kubectl"], "--via kubectl: name the pods with --host POD"),
        (["--via", "srun", "--host", "a"], "--via srun: no rank that answered has SLURM_JOB_ID"),
        (["--host", "-oProxyCommand=x"], "is not the name of a host, job or pod"),
        (["--host", "a", "--program", "'"], "No closing quotation"),
        (["--go"], "attach --go: no other host is known"),
        (["--store", "node"], "attach --store node: is not HOST:PORT"),
        (["--store", ":70000"], "is not HOST:PORT"),
    ):
        done = attach(rank, *(f"{options[0]}={options[1]}", *options[2:]) if len(options) > 1 else options)
        assert (2, 1) == (done.returncode, done.stderr.count(b"\n")), options
        assert words in done.stderr.decode()
    assert [] == asked()


def test_a_store_that_is_gone_is_a_note_and_the_rest_is_said(ranks):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    answer = json.loads(attach(ranks(0), "--store", f"127.0.0.1:{port}", "--format", "json").stdout)
    assert any(f"no store at 127.0.0.1:{port} any more" in note for note in answer["notes"])
    assert [1] == answer["unanswered"]


SLURM = {"SLURM_JOB_ID": "12", "SLURM_JOB_NODELIST": "node-[1-3]"}


def heard(rank, host, alive=True, **more):
    return RankState(rank=rank, world_size=4, host=host, pid=5, alive=alive, **more)


def test_in_a_slurm_job_srun_asks_the_nodes_from_which_nobody_answered():
    states = [heard(0, "node-1.cluster", environment=SLURM), heard(1, "node-1.cluster"), heard(2, "node-3", alive=None)]
    assert (2, 3) == other_hosts.silent_ranks(states)
    found = other_hosts.commands(states, None)
    assert ["node-3", "node-2"] == [command.where for command in found]
    assert str(found[0]).startswith("srun --overlap --jobid=12 --nodelist=node-3 ")
    assert str(found[1]).endswith(" dtdebug attach --format json")
    assert "ssh" == other_hosts.commands(states, None, via="ssh")[0].words[0]


def test_a_list_of_nodes_that_was_cut_off_names_nobody():
    cut = {"SLURM_JOB_ID": "12", "SLURM_JOB_NODELIST": ("node-[1," + "22," * 200)[:500]}
    assert [] == other_hosts.commands([heard(0, "node-1", environment=cut)], None)


def test_who_sees_the_folder_is_asked_for_it_and_names_that_are_none_are_left_out(tmp_path):
    folder = RunFolder.make(tmp_path)
    states = [heard(0, "here"), heard(1, "node-7", alive=None), heard(2, "-oProxyCommand=x", alive=None)]
    for state in states:
        folder.save_record(state)
    assert [f"ssh -o BatchMode=yes -o ConnectTimeout=5 node-7 -- 'dtdebug attach --format json {folder.path}'"] == [
        str(command) for command in other_hosts.commands(states, folder)
    ]
    pods = other_hosts.commands(states, None, via="kubectl", named=["trainer-1=1"])
    assert ["kubectl exec trainer-1 -- dtdebug attach --format json 1"] == [str(command) for command in pods]


def test_a_job_whose_ranks_all_answered_asks_nobody():
    states = [heard(rank, "node-1", environment=SLURM) for rank in range(3)]
    assert [] == other_hosts.commands([*states, heard(3, "node-2", alive=False)], None)


def test_answers_of_others_take_the_place_of_ranks_that_lack_and_of_no_others():
    states = [heard(0, "a"), RankState(rank=1), RankState(rank=2)]
    others = [heard(0, "b"), heard(1, "b"), RankState(rank=2, host="b")]
    joined, notes = other_hosts.join_answers(states, others)
    assert [(0, "a", True), (1, "b", True), (2, "", None)] == [(s.rank, s.host, s.alive) for s in joined]
    assert () == notes


def test_addresses_that_mean_another_host_here_are_left_out():
    addresses = {0: "127.0.0.1:1", 1: "10.0.0.1:2"}
    kept, (note,) = other_hosts.reachable(addresses, "node-0")
    assert {1: "10.0.0.1:2"} == kept
    assert "rank 0 can be asked on its own host only" in note
    assert (addresses, ()) == other_hosts.reachable(addresses, "127.0.0.1")


def test_the_store_is_proposed_where_its_addresses_can_be_reached():
    place = {"MASTER_ADDR": "node-0", "MASTER_PORT": "29500"}
    assert "node-0:29500" == other_hosts.store_of([heard(0, "a", environment=place, facts={"endpoint": "10.0.0.1:2"})])
    assert "" == other_hosts.store_of([heard(0, "a", environment=place, facts={"endpoint": "127.0.0.1:2"})])


@pytest.fixture
def python():
    """Starts a program with these variables; the process and what it prints first."""
    started = []

    def start(program, **variables):
        inherited = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE")}
        process = subprocess.Popen(
            [sys.executable, "-c", program],
            env=inherited | variables,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        started.append(process)
        return process.pid, process.stdout.readline().decode().strip()

    yield start
    for process in started:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@pytest.mark.skipif(pyspy._program() is None, reason="py-spy is not installed")
def test_a_process_that_is_no_rank_is_said_to_be_none_with_its_line_and_who_to_ask(python):
    pid, _ = python(RANK)
    python(RANK, RANK="0", WORLD_SIZE="1")
    done = attach(pid)
    said = done.stderr.decode()

    assert (2, b"") == (done.returncode, done.stdout)
    assert said.startswith(f"dtdebug: attach: process {pid} (")
    assert "is no rank: its environment has no number of one" in said
    assert "it is at <string>:4 in waits, where it waits in " in said
    assert "can be asked: `dtdebug attach " in said
    assert 1 == len(said.splitlines())


def test_what_may_be_a_rank_is_not_called_a_stranger(python):
    """A program that a wrapper with the rank's number has started, and one that multiprocessing started for a rank."""
    wrapper = (
        "import subprocess, sys\nchild = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(120)'])\n"
    )
    _, child = python(f"{wrapper}print(child.pid, flush=True)\nchild.wait()", RANK="1", WORLD_SIZE="2")
    _, spawned = python(WITH_CHILD)
    for pid in (int(child), int(spawned)):
        found = RankState(rank=1 if pid == int(child) else None, pid=pid, stack=(Frame("/job/train.py", 3, "step"),))
        assert stranger(pid, [found]) == ""


@pytest.mark.skipif(pyspy._program() is None, reason="py-spy is not installed")
def test_a_process_that_a_rank_has_started_is_not_taken_for_the_rank(python):
    """It inherits the rank's number."""
    rank, child = python(WITH_CHILD, RANK="1", WORLD_SIZE="2")
    done = attach(child)
    said = done.stderr.decode()

    assert 2 == done.returncode
    assert f"is no rank: rank 1, process {rank}, has started it; it is at <string>:4 in waits" in said
    # Other tests may run ranks below the same process at this time.
    assert re.search(
        rf"on this host (rank 1 can be asked: `dtdebug attach {rank}`|ranks \d[-,\d ]* can be asked)", said
    )
