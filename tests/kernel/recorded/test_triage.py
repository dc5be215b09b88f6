"""The logs of a job: who failed first, who followed, who fell silent, what the machine reports; and its parts."""

import gzip
import json
import lzma
import os
import signal
import subprocess
import sys
import tarfile
import threading
from pathlib import Path

import msgspec
import pytest
import triage_jobs as jobs

from dtdebug.cli.main import main
from dtdebug.errors import FOUND, NOTHING, USAGE
from dtdebug.recorded.job_logs import api, render, streams
from dtdebug.recorded.job_logs.job_view import view
from dtdebug.recorded.job_logs.part import decode, encode, merge
from dtdebug.recorded.job_logs.rank_from_path import of_paths
from dtdebug.recorded.job_logs.timestamps import when
from dtdebug.recorded.log_files.line_blocks import CHUNK, LineBuffer
from dtdebug_taxonomy.knowledge.hardware import bus, catalogue, parse_event

RANKS = 24


def told(capsys) -> dict:
    return json.loads(capsys.readouterr().out)


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """One job of rank files whose culprit raises."""
    return jobs.make(tmp_path_factory.mktemp("job"), 40_401, RANKS, "rank-files", "raises", lines=60)


@pytest.mark.parametrize("layout", jobs.LAYOUTS)
@pytest.mark.parametrize("fault", jobs.FAULTS)
def test_the_rank_that_failed_first_is_named(tmp_path, layout, fault):
    """In each layout of logs and for each fault; the machine's report is joined to it where the logs allow."""
    seed = 50_000 + 10 * jobs.LAYOUTS.index(layout) + jobs.FAULTS.index(fault)
    planted = jobs.make(tmp_path / "logs", seed, RANKS, layout, fault, lines=60)
    found = view(api.read_part([str(tmp_path / "logs")], 1))

    assert planted.culprit == found.first[0].rank
    assert found.first[0].exception == planted.exception
    assert planted.ranks == found.ranks
    assert planted.culprit not in found.cascade
    assert (planted.culprit in [s.rank for s in found.silent]) == (not planted.exception)
    if planted.code and planted.joinable:
        assert planted.culprit in [e.rank for e in found.hardware if e.code == planted.code]


def test_the_form_for_programs(job, capsys):
    """All that a program needs, with the line of the rank's own log."""
    assert main(["triage", str(job.folder), "--format", "json"]) == FOUND
    data = told(capsys)
    first = data["first"][0]
    lines = Path(first["file"]).read_text().split("\n")

    assert (data["ranks"], data["coverage"]["files"], data["coverage"]["unread"]) == (RANKS, RANKS, [])
    assert (first["rank"], first["exception"]) == (job.culprit, job.exception)
    assert lines[first["line"] - 1].endswith(first["text"].rpartition(", ")[0].partition(": ")[2])
    assert sorted([job.culprit, *data["cascade"]["ranks"]]) == list(range(RANKS))
    assert data["diagnosis"]["symptoms"][0]["code"]
    assert data["bytes"] == sum(f.stat().st_size for f in job.files)
    assert data["claims"][0]["record"]["path"] == first["file"]


def test_diagnose_of_a_folder_says_the_same(job, capsys):
    """A folder is a job, whatever the verb."""
    main(["triage", str(job.folder), "--format", "json"])
    one = told(capsys)

    assert main(["diagnose", str(job.folder), "--format", "json"]) == FOUND
    assert told(capsys) == one


def test_what_the_user_says_of_a_folder_counts(job, capsys):
    """The description and the answers, as with one log."""
    main(["diagnose", str(job.folder), "--answer", "activity=training", "--format", "json"])
    known = told(capsys)["diagnosis"]["known"]

    assert [row["source"] for row in known if row["key"] == "activity"] == ["answered"]
    assert main(["diagnose", str(job.folder), "--answer", "activity=sleeping"]) == USAGE


def test_parts_of_hosts_make_the_same_job(job, tmp_path, capsys):
    """Whichever hosts read which logs, and whether one was read twice."""
    halves = [job.files[::2], job.files[1::2], job.files[:3]]
    for number, files in enumerate(halves):
        assert main(["triage", "--part", *map(str, files)]) == NOTHING
        (tmp_path / f"part-{number}.json").write_text(capsys.readouterr().out)
    main(["triage", str(job.folder), "--format", "json"])
    whole = told(capsys)
    assert main(["triage", str(tmp_path / "part-*.json"), "--format", "json"]) == FOUND
    joined = told(capsys)

    for key in ("ranks", "bytes", "first", "cascade", "silent"):
        assert key == "bytes" or whole[key] == joined[key]
    assert joined["coverage"]["files"] == RANKS


def test_a_part_survives_its_form(job):
    """What is written is what was read."""
    part = api.read_part([str(job.folder)], 1)

    assert encode(decode(encode(part), "x")) == encode(part)
    assert merge([part]).streams == part.streams


def test_processes_beside_each_other_find_the_same(job):
    """Only who keeps an example may differ."""
    one, two = (view(api.read_part([str(job.folder)], n)) for n in (1, 2))

    assert (one.first, one.cascade, one.silent) == (two.first, two.cascade, two.silent)


def test_packed_logs_are_read(job, tmp_path, capsys):
    """As files of several kinds and as an archive."""
    for number, file in enumerate(job.files):
        data = file.read_bytes()
        if number % 2:
            (tmp_path / f"{file.name}.gz").write_bytes(gzip.compress(data))
        else:
            (tmp_path / f"{file.name}.xz").write_bytes(lzma.compress(data))
    archive = tmp_path / "all.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        for file in job.files:
            tar.add(file, file.name)
    for paths in ([str(tmp_path / "*.[gx]z")], [str(archive)]):
        main(["triage", *([p for p in paths if "all" in p] or map(str, tmp_path.glob("rank*"))), "--format", "json"])
        data = told(capsys)
        assert (data["first"][0]["rank"], data["ranks"]) == (job.culprit, RANKS)


def test_what_cannot_be_read_is_said(tmp_path, capsys):
    """A broken archive and a binary file beside a log."""
    (tmp_path / "rank_0.log").write_text("step 1\n")
    (tmp_path / "rank_1.log.gz").write_bytes(gzip.compress(os.urandom(5_000))[:400])
    (tmp_path / "rank_2.log").write_bytes(bytes(9_000))

    assert main(["triage", str(tmp_path), "--format", "json"]) == FOUND
    data = told(capsys)
    assert data["status"] == "unread"
    assert data["coverage"]["files"] == 1
    assert len(data["coverage"]["unread"]) == 2
    assert main(["triage", str(tmp_path / "none")]) == USAGE
    assert "no such file" in capsys.readouterr().err


def test_a_healthy_job_has_no_failure(tmp_path, capsys):
    """Exit status 0, and it says so."""
    for rank in range(4):
        lines = [f"2026-03-01 10:{n // 60:02d}:{n % 60:02d} step {n} loss 1.{n}" for n in range(500)]
        (tmp_path / f"rank_{rank}.log").write_text("\n".join(lines) + "\n")

    assert main(["triage", str(tmp_path)]) == NOTHING
    assert "training went on to the end of the logs, step 499" in capsys.readouterr().out


def diagnosis_of(found):
    from dtdebug_taxonomy.diagnosis.diagnose import diagnose
    from dtdebug_taxonomy.knowledge.loader import load

    return diagnose(load(), found.snapshot)


@pytest.mark.parametrize(
    ("names", "whose"),
    [
        (["a/rank_0.log", "a/rank_1.log"], [(0, None, ""), (1, None, "")]),
        (["gpu-052_rank417.log", "gpu-053_rank425.log"], [(417, None, "gpu-052"), (425, None, "gpu-053")]),
        (["j-9-gpu-011-0.out", "j-9-gpu-012-1.out"], [(0, None, "gpu-011"), (1, None, "gpu-012")]),
        (["n/none_x/attempt_1/3/stderr.log"], [(None, 3, "")]),
        (["o/1/rank.03/stdout", "o/1/rank.04/stdout"], [(3, None, ""), (4, None, "")]),
        (["slurm-881.out"], [(None, None, "")]),
        (["log_local_rank_2.txt"], [(None, 2, "")]),
        (["ip-10-0-3-17/stdout.0", "ip-10-0-3-18/stdout.1"], [(0, None, "ip-10-0-3-17"), (1, None, "ip-10-0-3-18")]),
        (["j_48213_a3mega-50.out", "j_48213_a3mega-51.out"], [(None, None, "a3mega-50"), (None, None, "a3mega-51")]),
        (["w-a1b2-0100-2321.out", "w-a1b3-0100-9322.out"], [(None, None, ""), (None, None, "")]),
    ],
)
def test_whose_log_a_file_is(names, whose):
    """A number is a rank only if the names show it."""
    assert [(w.rank, w.local) for w in of_paths(names)] == [w[:2] for w in whose]
    assert [w[2] for w in whose if w[2]] == [f.host for f, w in zip(of_paths(names), whose, strict=True) if w[2]]


def test_a_file_that_several_print_in_keeps_the_node_of_its_name():
    """Whatever the folder is called."""
    for folder in ("logs", "tmp8"):
        assert [w.node for w in of_paths([f"{folder}/worker-a-{n}.log" for n in range(4)])] == [
            f"worker-a-{n}" for n in range(4)
        ]


@pytest.mark.parametrize(
    ("line", "seconds"),
    [
        (b"2026-03-01 00:00:10,500 step", 10.5),
        (b"[rank3]:[E301 00:00:10.500000 ProcessGroupNCCL.cpp:616] x", 10.5),
        (b"Mar  1 00:00:10 gpu-1 kernel: x", 10.0),
        (b"2026-03-01T01:00:10+01:00 x", 10.0),
        (b"[Mar 01 2026 00:00:10] [ERROR] [tid 7] x", 10.0),
        (b"elapsed 12:34:56 of 99:00:00", None),
        (b"step 2026 13:00:00", None),
    ],
)
def test_a_time_is_one_only_with_its_date(line, seconds):
    """Counters look like times."""
    begin = when(b"2026-03-01 00:00:00", 2026)

    assert begin is not None
    assert when(line, 2026) == (None if seconds is None else begin + seconds)


@pytest.mark.parametrize(
    ("line", "code", "owner", "role", "pci", "pid"),
    [
        ("NVRM: Xid (PCI:0000:3b:00): 79, pid=41, name=x, GPU", "Xid 79", "device", "root", "0000:3b:00", 41),
        ("NVRM: Xid (0000:01:00): 31, Ch 00000008", "Xid 31", "application", "root", "0000:01:00", 0),
        ("NVRM: Xid (PCI:0000:01:00): 63, pid='<unknown>', Row Remapper", "Xid 63", "device", "note", "0000:01:00", 0),
        ("NVRM: Xid (PCI:0000:01:00): 45, pid=7, Ch 1", "Xid 45", "device", "cascade", "0000:01:00", 7),
        ("NVRM: Xid (PCI:0018:01:00): 149, NETIR Nonfatal XC0 i0", "Xid 149", "link", "note", "0018:01:00", 0),
        ("nvswitch0: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 30", "SXid 20034", "link", "root", "0000:c1:00", 0),
        ("nvswitch3: SXid (PCI:0000:c5:00.0): 12028, Non-fatal", "SXid 12028", "link", "note", "0000:c5:00", 0),
        ("INFO: task pt_main_thread:812 blocked for more than 120 seconds.", "hung task", "host", "root", "", 812),
        ("Out of memory: Killed process 4242 (python3) total-vm:1kB", "OOM killer", "host", "root", "", 4242),
        ("0000:40:01.1: AER: PCIe Bus Error: severity=Corrected", "AER corrected", "device", "note", "0000:40:01", 0),
        (
            "pcieport 0000:00:01.0: AER: Uncorrected (Fatal) error received: 0000:01:00.0",
            "AER uncorrected", "device", "root", "0000:01:00", 0,
        ),
        ("pcieport 0000:3a:00.0: pciehp: Slot(4): Link Down", "PCIe link down", "device", "root", "", 0),
        (
            "pcieport 0000:3a:00.0: DPC: containment event, status:0x1f01 source:0x0000",
            "PCIe containment", "device", "root", "0000:3a:00", 0,
        ),
        ("NMI watchdog: Watchdog detected hard LOCKUP on cpu 17", "hard lockup", "host", "root", "", 0),
        ("rcu: INFO: rcu_sched self-detected stall on CPU", "RCU stall", "host", "root", "", 0),
        ("blk_update_request: I/O error, dev sdd, sector 1932 op 0x1:(WRITE)", "disk I/O", "storage", "root", "", 0),
        ("EXT4-fs error (device sdf) in ext4_orphan_add:188", "file system error", "storage", "root", "", 0),
        ("bnxt_en 0000:41:00.0 ens2: NIC Link is Down", "network link down", "link", "root", "0000:41:00", 0),
        ("mce: [Hardware Error]: Machine check events logged", "MCE logged", "host", "note", "", 0),
        (
            "Memory failure: 0x3710: Sending SIGBUS to python3:361 due to hardware memory corruption",
            "memory failure", "host", "root", "", 361,
        ),
        ("NVRM: GPU6 _kgspIsHeartbeatTimedOut: Heartbeat timed out, diff 6070", "GSP", "device", "root", "", 0),
        ("NVRM: _kgspIsHeartbeatTimedOut: Heartbeat timed out, heartbeat 0", "GSP", "device", "root", "", 0),
        (
            "slurmstepd: error: *** STEP 8.0 ON n12 UNCORRECTABLE MEMORY ERROR AT 2026-11-26T10:00:00 ***",
            "uncorrectable memory error", "host", "root", "", 0,
        ),
        ("NFS: __nfs4_reclaim_open_state: Lock reclaim failed!", "NFS", "storage", "root", "", 0),
        ("NFS: nfs4_reclaim_open_state: unhandled error -524", "NFS", "storage", "root", "", 0),
        (
            "mlx5_core 0000:41:00.0: temp_warn:190:(pid 0): High temperature on sensors with bit set 0 1",
            "mlx5 temperature", "device", "root", "0000:41:00", 0,
        ),
        ("pciehp 0000:00:1c.0:pcie004: slot(3): Link Down event", "PCIe link down", "device", "root", "", 0),
        ("pciehp 0000:00:1c.0:pcie004: Card not present on Slot(3)", "PCIe link down", "device", "root", "", 0),
        ("[9.1] nvme nvme0: controller is down; will reset: CSTS=0xffffffff", "NVMe", "storage", "root", "", 0),
        (
            "[31.2] amdgpu 0000:28:00.0: ring gfx_0.0.0 timeout, signaled seq=5, emitted seq=7",
            "amdgpu ring timeout", "device", "root", "0000:28:00", 0,
        ),
        (
            "detected NVSwitch fatal error 20034 on fid 0 on NVSwitch pci bus id 00000000:86:00.0 port 33",
            "SXid 20034", "link", "root", "0000:86:00", 0,
        ),
        ("nvidia-fabricmanager.service: Failed with result", "Fabric Manager ended", "driver", "root", "", 0),
        ("Fabric Manager detected GPU NVL Fatal error on :", "Fabric Manager: NVLink", "link", "root", "", 0),
        ("nfs: server fs1 not responding, still trying", "NFS", "storage", "root", "", 0),
    ],
)  # fmt: skip
def test_a_line_of_the_kernel_is_parsed(line, code, owner, role, pci, pid):
    """Whatever stands before it."""
    for before in (
        "",
        "[81234.567890] ",
        "Mar  1 00:00:10 gpu-1 kernel: ",
        "kern  :err   : [Sun Mar  1 00:00:10 2026] ",
    ):
        event = parse_event(before + line)
        assert event is not None
        assert (event.code, event.owner, event.role, event.pci, event.pid) == (code, owner, role, pci, pid)
        assert event.action
        assert event.url.startswith("https://")


def test_ordinary_lines_are_no_reports():
    """Words of the catalogue in other sentences."""
    started = "nvidia-fabricmanager.service: Deactivated successfully."
    for line in (
        started,
        "Xid (errors) are documented",
        "task done: blocked for more than we like",
        "link down the page",
        "",
    ):
        assert parse_event(line) is None


def test_the_catalogue_is_whole():
    """Each bucket has an action, each code a name."""
    known = catalogue()

    assert len(known.xid) > 90
    assert len(known.sxid) > 90
    assert {row["action"] for row in known.xid.values()} <= set(known.buckets)
    assert set(known.buckets.values()) <= set(known.actions)
    assert all(row["name"] for row in (*known.xid.values(), *known.sxid.values()))


def test_the_bus_of_nccl_is_an_address():
    """NCCL prints a number, the kernel an address."""
    assert [bus(b) for b in ("3b000", "0000:3B:00.0", "PCI:0000:3b:00", "zz")] == ["0000:3b:00"] * 3 + [""]


def test_the_first_failure_of_a_running_job_is_said(tmp_path):
    """Soon after its line, in a process of its own."""
    log = tmp_path / "rank_1.log"
    healthy = "2026-03-01 10:00:00 step 1 loss 2.0\n"
    raised = 'Traceback (most recent call last):\n  File "/w/a.py", line 5, in main\n    f()\nValueError: bad\n'
    log.write_text(healthy)
    (tmp_path / "rank_0.log").write_text("2026-03-01 10:00:00 step 1 loss 2.0\n")
    follower = subprocess.Popen(
        [sys.executable, "-m", "dtdebug", "triage", "--follow", str(tmp_path), "--format", "json"],
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        fails = threading.Timer(2.0, lambda: log.write_text(f"{healthy}{raised}"))
        fails.start()
        out, _ = follower.communicate(timeout=60)
    finally:
        if follower.poll() is None:
            os.killpg(follower.pid, signal.SIGKILL)
    first = msgspec.json.decode(out)["first"][0]

    assert (first["rank"], first["exception"], first["line"]) == (1, "ValueError", 5)
    assert follower.returncode == FOUND


def test_ranks_that_only_the_messages_name(tmp_path):
    """Releases of torch before 2.3 print no rank before a line."""
    late = "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE, Timeout(ms)=1800000)"
    lines = [f"2024-05-07 15:51:{n:02d},140 - root - INFO - Starting training step on epoch {n}" for n in range(5)]
    lines += [f"[E ProcessGroupNCCL.cpp:457] [Rank {rank}] {late} ran for 1800035 milliseconds" for rank in (3, 2, 1)]
    (tmp_path / "job.log").write_text("\n".join(lines) + "\n")
    found = view(api.read_part([str(tmp_path)], 1))

    assert found.ranks == 3
    assert found.first == ()
    assert found.cascade == (1, 2, 3)


def logs(folder, ranks, write):
    """Files of ranks; `write` gives the lines of one."""
    folder.mkdir(exist_ok=True)
    for rank in range(ranks):
        (folder / f"rank_{rank}.log").write_text("\n".join(write(rank)) + "\n")
    return folder


def at(second, words, hour=10):
    """A line with its time."""
    return f"2026-03-01 {hour:02d}:{second // 60:02d}:{second % 60:02d},000 INFO {words}"


RETRIED = [
    "Traceback (most recent call last):",
    '  File "/w/fetch.py", line 44, in get',
    "    return session.get(url)",
    "requests.exceptions.ReadTimeout: read timed out",
    "WARNING fetch: attempt 1 of 5 failed",
]
PEER = "[/x/gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:2"
LATE = (
    "[rank{r}]:[E301 10:30:00.100000000 ProcessGroupNCCL.cpp:632] [Rank {r}] Watchdog caught collective operation "
    "timeout: WorkNCCL(SeqNum=90, OpType={op}, NumelIn=16, NumelOut=16, Timeout(ms)=600000) ran for 600010 "
    "milliseconds before timing out."
)


def steps(count, ahead=0):
    """Steps of training, one each 2 s."""
    return [at(2 * n + ahead, f"step {n} loss 1.{n}") for n in range(count)]


def late(rank, op="ALLREDUCE"):
    """What the watchdog of a rank prints."""
    return LATE.format(r=rank, op=op)


def test_an_exception_that_a_rank_went_on_after_is_no_failure(tmp_path):
    """Ranks that retried are not accused, whatever they print before the job fails."""
    raised = ["Traceback (most recent call last):", '  File "/w/a.py", line 5, in main', "    f()", "KeyError: 'x'"]

    def write(rank):
        mine = [*steps(5), *(RETRIED if rank % 3 == 0 else []), *steps(30)[5:]]
        return [*mine, *(raised if rank == 5 else [late(rank)])]

    found = view(api.read_part([str(logs(tmp_path / "logs", 12, write))], 1))

    assert [(row.rank, row.exception) for row in found.first] == [(5, "KeyError")]


def test_files_without_times_say_nothing_of_each_others_order(tmp_path):
    """As `torchrun --redirects 3` writes them: no step of one file came after the exception in another."""
    trace = ["Traceback (most recent call last):", '  File "/w/a.py", line 5, in main', "    f.read()"]
    for rank, last in enumerate(["io.UnsupportedOperation: not readable", f"RuntimeError: {PEER}"]):
        folder = tmp_path / "logs" / "run_x" / "attempt_0" / str(rank)
        folder.mkdir(parents=True)
        (folder / "stderr.log").write_text("".join(f"[rank{rank}]: {line}\n" for line in (*trace, last)))
        (folder / "stdout.log").write_text("".join(f"step {n} loss 1.{n}\n" for n in range(20)))

    found = view(api.read_part([str(tmp_path / "logs")], 1))

    assert [(0, "UnsupportedOperation")] == [(row.rank, row.exception) for row in found.first]
    assert ((0,), (1,)) == (found.verdict.culprits, found.verdict.waiting)


def test_the_one_who_says_nothing_where_all_others_do(tmp_path):
    """No exception at all, and no times to compare."""

    def write(rank):
        mine = [f"step {n} loss 1.{n}" for n in range(20)]
        return mine if rank == 7 else [*mine, late(rank)]

    found = view(api.read_part([str(logs(tmp_path / "logs", 16, write))], 1))

    assert [row.rank for row in found.first] == [7]
    assert [row.rank for row in found.silent] == [7]
    assert ("not_arrived", (7,)) == (found.verdict.kind, found.verdict.culprits)


def test_the_one_in_another_collective_is_found_among_many_retries(tmp_path):
    """Its kind of line is rare; the vote of the ranks needs it."""

    def write(rank):
        return [
            *steps(9),
            *(RETRIED if rank < 4 else []),
            *steps(20)[9:],
            late(rank, "ALLGATHER" if rank == 9 else "ALLREDUCE"),
        ]

    found = view(api.read_part([str(logs(tmp_path / "logs", 16, write))], 1))

    assert found.verdict.culprits == (9,)


def test_clocks_of_hosts_are_set_right_by_steps(tmp_path):
    """A host whose clock is 45 s behind did not fall silent."""
    for node in range(4):
        folder = tmp_path / f"node-{node:02d}"
        folder.mkdir()
        for local in range(4):
            rank = 4 * node + local
            mine = steps(30, ahead=0 if node != 2 else 45)
            end = [late(rank)] if rank != 3 else []
            (folder / f"rank_{rank}.log").write_text("\n".join([*(mine if end else mine[:5]), *end]) + "\n")
    found = view(api.read_part([str(tmp_path)], 1))

    assert found.clocks == (("node-02", 45.0),)
    assert [row.rank for row in found.silent] == [3]


def test_a_local_rank_is_one_of_the_job_where_its_node_shows_it(tmp_path):
    """The file has no rank; its neighbours' messages do."""
    for node in range(2):
        for local in range(4):
            folder = tmp_path / f"host-{node}" / "run_1" / "attempt_0" / str(local)
            folder.mkdir(parents=True)
            (folder / "stdout.log").write_text("\n".join(steps(20)) + "\n")
            rank = 4 * node + local
            said = "Fatal Python error: Segmentation fault\n\n" if rank == 6 else late(rank) + "\n"
            (folder / "stderr.log").write_text(said)
    found = view(api.read_part([str(tmp_path)], 1))

    assert [row.rank for row in found.first] == [6]
    assert found.ranks == 8


def test_what_a_healthy_run_did_not_print(tmp_path, capsys):
    """Lines of few ranks first; of what both print none."""
    healthy = logs(tmp_path / "healthy", 4, lambda rank: steps(20))
    bad = logs(tmp_path / "bad", 4, lambda rank: [*steps(20), *(["nvme0: reset of queue"] if rank == 2 else [])])
    main(["triage", str(bad), "--against", str(healthy), "--format", "json"])
    rows = told(capsys)["new"]

    assert [(row["text"], row["line"], row["files"]) for row in rows] == [("nvme0: reset of queue", 21, 1)]
    main(["triage", str(healthy), "--against", str(healthy)])
    assert "nothing that the healthy run did not print" in capsys.readouterr().out
    assert main(["triage", str(bad), "--against", str(healthy), "--part"]) == USAGE


def test_what_is_new_is_evidence_where_the_job_failed(tmp_path, capsys):
    """Of the rank that is accused; else of the only one that printed it, while the others merely lost a peer."""
    healthy = logs(tmp_path / "healthy", 8, lambda rank: steps(20))
    odd = "fetcher: queue depth is 0, sleeping"
    lost = "RuntimeError: [/src/third_party/gloo/gloo/transport/tcp/pair.cc:547] Connection closed by peer [10.0.0.1]"
    trace = ["Traceback (most recent call last):", '  File "/w/a.py", line 5, in main', "    step(batch)"]

    for own, culprits in (("KeyError: 'x'", [5]), (lost, [])):
        bad = logs(
            tmp_path / own[:3],
            8,
            lambda r, own=own: [*steps(20), *([odd] if r == 5 else []), *trace, own if r == 5 else lost],
        )
        main(["triage", str(bad), "--format", "json"])
        assert told(capsys)["verdict"]["culprits"] == culprits
        main(["triage", str(bad), "--against", str(healthy), "--format", "json"])
        found = told(capsys)
        assert found["verdict"]["culprits"] == [5]
        assert [c["record"]["line"] for c in found["claims"] if c["what"] == "new"] == [21]


def test_the_page_shows_all_ranks_and_runs_nothing_of_the_logs(tmp_path, capsys):
    """One file, no address, what logs hold is text."""
    evil = "<script>alert(1)</script>"

    def write(rank):
        raised = ["Traceback (most recent call last):", '  File "/w/a.py", line 5, in main', f"ValueError: {evil}"]
        return [*steps(9), *(raised if rank == 2 else [late(rank)])]

    assert main(["triage", str(logs(tmp_path / "logs", 6, write)), "--format", "html"]) == FOUND
    page = capsys.readouterr().out

    assert page.count('<tr class="then">') == 5
    assert page.index('<tr class="first"><td>2</td>') < page.index('<tr class="then">')
    assert evil not in page
    assert "&lt;script&gt;alert" in page
    assert "http" not in page.replace("http-equiv", "")


def test_the_card_of_a_notebook(tmp_path):
    """Each rank is a column; nothing of a log is markup."""
    from dtdebug.recorded.job_logs import html

    raised = ["Traceback (most recent call last):", '  File "/w/a.py", line 5, in main', "ValueError: <b>"]
    folder = logs(tmp_path / "logs", 4, lambda rank: [*steps(9), *(raised if rank == 2 else [late(rank)])])
    found = view(api.read_part([str(folder)], 1))
    card = html.card(found, render.to_text(found, diagnosis_of(found), 0.0))

    assert card.count("<rect") == 4
    assert "rank 2: first" in card
    assert "<b>" not in card


def test_logs_in_a_store_of_objects(job, capsys):
    """By address, folder and pattern; the same as from the disk."""
    fsspec = pytest.importorskip("fsspec")
    store = fsspec.filesystem("memory")
    for file in job.files:
        store.pipe(f"/run9/{file.name}.gz", gzip.compress(file.read_bytes()))
    try:
        for address in ("memory://run9", "memory://run9/*.gz"):
            assert main(["triage", address, "--format", "json", "--processes", "1"]) == FOUND
            data = told(capsys)
            assert (data["ranks"], data["first"][0]["rank"]) == (RANKS, job.culprit)
            assert data["first"][0]["file"].startswith("memory://run9/")
        assert main(["triage", "memory://none"]) == USAGE
        assert "no such object" in capsys.readouterr().err
    finally:
        store.rm("/run9", recursive=True)


def test_the_wizard_takes_the_logs_of_a_job(job, monkeypatch):
    """It begins with what they say."""
    from dtdebug.wizard import terminal

    begun = []
    monkeypatch.setattr(terminal, "start", lambda session, report: begun.append(session) or 0)

    assert main(["wizard", str(job.folder)]) == 0
    assert begun[0].snapshot.verdict.culprits == (job.culprit,)


def test_what_rays_driver_prints_itself_is_no_ranks(tmp_path):
    """A worker's line names its rank twice; the exception below has no prefix."""
    log = tmp_path / "driver.log"
    log.write_text(
        "\x1b[36m(Worker[rank=3] pid=71, ip=10.0.0.7)\x1b[0m step 4 loss 2.1\n"
        "Traceback (most recent call last):\n"
        '  File "/w/main.py", line 8, in <module>\n    group.fit()\n'
        "RuntimeError: no GPUs left for the validation workers\n"
    )
    found = view(api.read_part([str(log)], 1))
    assert [(row.rank, row.exception) for row in found.first] == [(None, "RuntimeError")]
    assert {span.rank for span in found.spans} == {3}


def test_a_line_of_any_length_takes_bounded_memory():
    """It is cut while it comes, to its begin or, of a progress bar, its end; the lines after it are whole."""
    for piece, kept in ((b"loss 1.5 ", b"[rank1]: loss"), (b"\r 12%|# ", b"\r 12%|# ")):
        whole = LineBuffer()
        assert whole.add(b"[rank1]: ") == b""
        for _ in range(8):
            assert whole.add(piece * (CHUNK // 16)) == b""
        last = whole.add(b"\nnext\nand")
        assert len(last) < 2 * CHUNK
        assert kept in last[:100]
        assert last.endswith(b"\nnext\n")
        assert whole.end() == b"and"


def test_the_first_line_of_a_logs_end_is_nobodys():
    """It was cut, and what is left of a name would be another host."""
    row = b"node-a-12 pytorch [default1]: step\n"
    tail = (row * 4)[11:]
    assert [(kept.number, kept.raw) for kept in streams.lines_at_end(tail, 9)] == [(n, row[:-1]) for n in (7, 8, 9)]
    assert [kept.number for kept in streams.lines_at_end(row * 2, 2)] == [1, 2]
