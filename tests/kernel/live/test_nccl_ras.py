"""What NCCL's RAS says of a job: read from text and JSON, asked on loopback, and never an accusation by one query."""

import json
import socket
import threading
from contextlib import contextmanager, suppress

import pytest

from dtdebug.cli.main import main
from dtdebug.live.job import ras_view
from dtdebug.live.probe import nccl_ras as client
from dtdebug.recorded.nccl_ras import RasError, read_status, verdict_of
from dtdebug_taxonomy.model.ranks import RankState, Verdict
from dtdebug_taxonomy.presentation.case_json import Case

HEAD = """\
NCCL version 2.27.5 compiled with CUDA 12.9
CUDA runtime version 12090, driver version 12080

Job summary
===========

  Nodes  Processes         GPUs  Processes     GPUs
(total)   per node  per process    (total)  (total)
      2          4            1          8        8

Communicators... ({seconds}s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         1         2       {node}         8         {seen}   RUNNING  {errors}

Errors
======

"""


def text(seen=8, node="  4", errors="OK", seconds="0.00", rest=""):
    return HEAD.format(seconds=seconds, node=node, seen=seen, errors=errors) + rest


def counts(low=41, op="AllReduce"):
    return text(errors="MISMATCH", rest=(
        "Warnings\n========\n\n#0-0 (27a079b828ff1a75) MISMATCH\n"
        f"  Communicator ranks have different {op} operation counts\n"
        f"  7 ranks have launched up to operation {low + 1}\n"
        f"  Rank 5 has launched up to operation {low} -- GPU 1 managed by process 77 on node 10.0.0.2\n"
    ))  # fmt: skip


SILENT = text(7, "3-4", "INCOMPLETE", "2.05", (
    "INCOMPLETE\n  Missing communicator data from 1 job process\n  Process 77 on node 10.0.0.2 managing GPU 1\n\n"
    "#0-0 (cf264af53edbe986) INCOMPLETE\n  Missing communicator data from 1 rank\n  The missing rank: 5\n"
))  # fmt: skip
DEAD = text(7, "3-4", "INCOMPLETE", "0.00", (
    "DEAD\n  1 job process is considered dead (unreachable via the RAS network)\n"
    "  Process 77 on node 10.0.0.2 managing GPU 1\n\n#0-0 (cf264af53edbe986) INCOMPLETE\n"
    "  Missing communicator data from 1 rank\n"
    "  Rank 5 -- GPU 1 managed by process 77 on node 10.0.0.2\n"))  # fmt: skip


def document(behind=(), missing=(), dead=False, count=40):
    def rank(n, **more):
        return {"rank": n, "host": f"10.0.0.{1 + n // 4}", "pid": 72 + n, "cuda_dev": n % 4, "nvml_dev": n % 4, **more}

    state = {"init_state": 0, "async_error": 0, "finalize_called": False, "destroy_flag": False, "abort_flag": False}
    ranks = [
        rank(n, status=state, collective_counts={"Broadcast": 2, "AllReduce": count - (n in behind)})
        for n in range(8) if n not in missing
    ]  # fmt: skip
    gone = [rank(n, status={"unresponsive": True, "considered_dead": dead}) for n in missing]
    comm = {"hash": "0xae94423cfbb2ef4a", "size": 8, "ranks_count": len(ranks), "ranks": ranks,
            "missing_ranks_count": len(gone), "missing_ranks": gone}  # fmt: skip
    return json.dumps({"nccl_version": "2.29.1", "communicators_count": 1, "communicators": [comm],
                       "ras": {"collection_time_sec": 0.0, "timeouts_count": 0}}, indent=2)  # fmt: skip


@pytest.mark.parametrize(
    ("said", "kind", "ranks", "words"),
    [
        (text(), "none", (), "no rank is missing, dead or behind. It does not see whether operations end"),
        (SILENT, "not_arrived", (5,), "Rank 5 (process 77 on node 10.0.0.2, GPU 1) does not answer NCCL's RAS"),
        (DEAD, "dead", (5,), "Rank 5 (process 77 on node 10.0.0.2, GPU 1) is considered dead"),
        (counts(), "not_understood", (), "Rank 5 has launched AllReduce up to #41"),
        (text(errors="MISMATCH"), "not_understood", (), "MISMATCH, and the list of the ranks is not in"),
        (document(), "none", (), "no rank is missing"),
        (document(missing=(5,)), "not_arrived", (5,), "Rank 5 (process 77 on node 10.0.0.2, GPU 1) does not answer"),
        (document(missing=(5,), dead=True), "dead", (5,), "considered dead"),
        (document(behind=(5,)), "not_understood", (), "Rank 5 has launched AllReduce up to #39"),
    ],
)
def test_each_state_is_read(said, kind, ranks, words):
    """In either form; one query accuses nobody whose count is lower."""
    verdict, _ = verdict_of(read_status(said))

    assert (verdict.kind, verdict.culprits) == (kind, ranks)
    assert words in verdict.summary


@pytest.mark.parametrize(
    "said",
    [
        text(rest="DEAD\n  99999999 job processes are considered dead (unreachable)\n"),
        text(rest="TIMEOUT\n  Encountered 99999999 communication timeouts\n"),
        text(rest="#0-0 (cf264af53edbe986) INCOMPLETE\n  Missing communicator data from 99999999 ranks\n"),
        text().partition("Errors\n===")[0],
        json.dumps({"nccl_version": "2.29.1", "communicators": [{"hash": "0x1", "size": 8, "ranks": [{"rank": 0}]}]}),
    ],
)
def test_a_status_that_is_not_wholly_understood_clears_nobody(said):
    verdict, _ = verdict_of(read_status(said))

    assert verdict.kind == "not_understood"
    assert "Whether NCCL's RAS reports a fault is not known" in verdict.summary


WATCHED = "RAS Monitor Mode - watching for peer changes (Ctrl+C to exit)...\n======\n"
GONE = "[2026-10-03 22:20:41] PEER_DEAD: Process 77 on node 10.0.0.2 managing GPU 1\n"
EVENT = json.dumps({"timestamp": "2026-10-03 22:20:41", "group": "LIFECYCLE", "event": "PEER_DEAD", "details": "",
                    "peer": {"host": "10.0.0.2", "pid": 77, "cuda_devs": [1], "nvml_devs": [1]}}, indent=2)  # fmt: skip
EXAMINED = "".join(f"hpc-g31:70305 NCCL DIAG {line}\n" for line in (
    "=== RAS Diagnostics ===", "[OK]   ECC: no uncorrected volatile errors across 8 ranks in comm 0x1f",
    "RAS diagnostics completed in 12.3 ms across 8 RAS peers",
))  # fmt: skip
UNLIKE = "hpc-g31:70305 NCCL DIAG [INFO] NCCL environment: "
DIFFERS = EXAMINED.replace("hpc-g31:70305 NCCL DIAG RAS", (
    f"{UNLIKE}mismatch across 8 ranks in comm 0x1f for NCCL_ALGO\n{UNLIKE}NCCL_ALGO=Ring on rank(s) {{0,1,2,3}}\n"
    "hpc-g31:70305 NCCL DIAG RAS"
))  # fmt: skip


@pytest.mark.parametrize(
    ("said", "status", "words"),
    [
        (WATCHED + GONE, 1, "1 process (process 77 on node 10.0.0.2, GPU 1) is considered dead"),
        (EVENT, 1, "1 process (process 77 on node 10.0.0.2, GPU 1) is considered dead"),
        (f"{EVENT}\n{EVENT.replace('77', '78')}", 1, "2 processes (process 77 on node 10.0.0.2, GPU 1; process 78"),
        (WATCHED, 1, "no dead process in what was watched"),
        (EXAMINED, 0, "report no issue (ECC). It does not see whether operations end"),
        (DIFFERS, 1, "mismatch across 8 ranks in comm 0x1f for NCCL_ALGO; NCCL_ALGO=Ring on rank(s) {0,1,2,3}."),
        (f"step 1 loss 2.0\n{DIFFERS}", None, ""),
    ],
)
def test_events_and_diagnostics_are_read_and_not_taken_for_the_output_of_a_job(tmp_path, capsys, said, status, words):
    """They have no list of communicators; a report within a job's output leaves that a log."""
    file = tmp_path / "ras.txt"
    file.write_text(said)
    found = main([str(file)])

    shown = " ".join(capsys.readouterr().out.split())
    assert words in shown
    assert ("as the output of a job" in shown or "step" in said) is (status is None)
    assert status is None or found == status


@pytest.mark.parametrize(
    ("first", "second", "kind"),
    [
        (counts(41), counts(41), "not_arrived"),
        (counts(41), counts(57), "none"),
        (document(behind=(5,)), document(behind=(5,)), "not_arrived"),
        (document(behind=(5,)), document(behind=(5,), count=99), "none"),
        (document(), document(behind=(5,)), "none"),
    ],
)
def test_two_queries_show_who_is_behind(first, second, kind):
    """Equal counts are a hang; counts that rise are a job at work."""
    verdict, _ = verdict_of([*read_status(first), *read_status(second)])

    assert verdict.kind == kind
    assert verdict.culprits == ((5,) if kind == "not_arrived" else ())


def test_ranks_that_are_not_listed_are_those_that_no_other_group_lists():
    """RAS lists the small group, which may be ahead."""
    rest = (
        "#0-0 (fa93daea854b060b) MISMATCH\n  Communicator ranks have different AllGather operation counts\n"
        "  6 ranks have launched up to operation 640\n  2 ranks have launched up to operation 641\n"
        "  Rank 2 -- GPU 2 managed by process 74 on node 10.0.0.1\n"
        "  Rank 3 -- GPU 3 managed by process 75 on node 10.0.0.1\n"
    )
    verdict, step = verdict_of(read_status(text(errors="MISMATCH", rest=rest)))

    assert "Ranks 0-1,4-7 have launched AllGather up to #640, ranks 2-3 have #641" in verdict.summary
    assert "Ask once more" in step


def test_files_are_read_through_the_door(tmp_path, capsys):
    """Two of them, by text or JSON, are two looks."""
    for name, said in (("a.txt", counts()), ("b.txt", counts()), ("c.json", document(missing=(5,)))):
        (tmp_path / name).write_text(said)

    assert main([str(tmp_path / "a.txt"), str(tmp_path / "b.txt")]) == 1
    assert "the counts did not change between two queries" in " ".join(capsys.readouterr().out.split())
    assert main(["diagnose", str(tmp_path / "c.json"), "--format", "json"]) == 1
    assert json.loads(capsys.readouterr().out)["verdict"]["culprits"] == [5]


@contextmanager
def server(*answers, formats=True, greeting=b""):
    """Listen as RAS does; give the answers to the queries, one a connection. Yields (port, requests)."""
    listener = socket.create_server(("127.0.0.1", 0))
    asked = []

    def serve():
        with suppress(OSError):  # closed below, or by a client that has read enough
            for said in answers:
                connection, _ = listener.accept()
                with connection, connection.makefile("rw", newline="\n") as lines:
                    connection.sendall(greeting)
                    for line in lines:
                        asked.append(line.strip())
                        if line.startswith("TIMEOUT "):
                            lines.write("OK\n")
                        elif line.startswith("SET FORMAT "):
                            lines.write("OK\n" if formats else f"ERROR: Unknown command {line}")
                        elif line == "VERBOSE STATUS\n":
                            lines.write(said)
                            lines.flush()
                            break
                        lines.flush()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1], asked
    finally:
        listener.close()
        thread.join(5)


@pytest.mark.parametrize("formats", [True, False])
def test_only_documented_requests_are_sent(formats):
    """Releases without JSON answer with text."""
    with server(document(missing=(5,)) if formats else SILENT, formats=formats) as (port, asked):
        status = client.ask(port)

    assert verdict_of([status])[0].culprits == (5,)
    assert asked == ["TIMEOUT 5", "SET FORMAT json", "VERBOSE STATUS"]


def test_another_service_on_the_port_is_one_line():
    """It is asked for a time-out, and left."""
    with (
        server("", greeting=b"SSH-2.0-OpenSSH_9.2\r\n") as (port, asked),
        pytest.raises(RasError, match="is not NCCL's"),
    ):
        client.ask(port)
    assert asked in ([], ["TIMEOUT 5"])


def test_a_port_that_says_nothing_costs_the_time_out():
    """And a closed one nothing."""
    with socket.create_server(("127.0.0.1", 0)) as mute:
        port = mute.getsockname()[1]
        with pytest.raises(RasError, match=r"no answer of NCCL's RAS within 0\.3 s"):
            client.ask(port, seconds=0.3)
    with pytest.raises(RasError, match="can't be reached"):
        client.ask(port)


def state(rank, **more):
    return RankState(rank=rank, world_size=8, alive=True, backend="nccl", **more)


def test_a_case_that_names_nobody_takes_the_rank_that_ras_names(monkeypatch):
    """Also if that rank is on a host that was not asked; a verdict that names ranks keeps them."""
    states = [state(n, environment={"NCCL_RAS_ADDR": "localhost:1"}) for n in range(4)]
    empty = Case(verdict=Verdict(kind="not_understood", waiting=(0, 1, 2, 3), summary="No record explains it."))
    with server(document(behind=(5,)), document(behind=(5,))) as (port, _):
        monkeypatch.setattr(client, "port_of", lambda _: port)
        found = ras_view.with_ras(empty, states, pause=0.0)
    named = Case(verdict=Verdict(kind="not_arrived", culprits=(2,), summary="Rank 2 sleeps."))
    with server(document(missing=(5,))) as (port, _):
        monkeypatch.setattr(client, "port_of", lambda _: port)
        kept = ras_view.with_ras(named, states, pause=0.0)

    assert (found.verdict.culprits, found.verdict.kind) == ((5,), "not_arrived")
    assert (kept.verdict.culprits, "does not answer NCCL's RAS" in kept.verdict.evidence[-1]) == ((2,), True)


@pytest.mark.parametrize(
    ("environment", "port"),
    [({}, 28028), ({"NCCL_RAS_ADDR": "localhost:4000"}, 4000), ({"NCCL_RAS_ADDR": "10.0.0.9:4000"}, None),
     ({"NCCL_RAS_ENABLE": "0"}, None)],
)  # fmt: skip
def test_only_loopback_is_asked(environment, port):
    """At the port that the job has set; not if RAS is off, and not without NCCL."""
    assert client.port_of([state(0, environment=environment)]) == port
    assert client.port_of([RankState(rank=0, alive=True, backend="gloo")]) is None


@pytest.mark.parametrize("cut", [1, 200, 700, 900])
def test_cut_statuses_are_read_or_refused(cut):
    """Nothing else is raised."""
    for said in (SILENT, counts(), document(missing=(5,))):
        try:
            verdict_of(read_status(said[:cut]))
        except RasError:
            continue


@pytest.mark.parametrize("number", ["1" * 20, "-1"])
def test_a_row_that_is_not_understood_is_not_left_out_of_what_there_is(number):
    row = f"    0 {number}         1      4         1         4   RUNNING  MISMATCH"
    said = verdict_of(read_status("\n".join(row if "RUNNING" in line else line for line in text().splitlines())))[0]

    assert said.kind == "not_understood"
    assert number in said.summary
