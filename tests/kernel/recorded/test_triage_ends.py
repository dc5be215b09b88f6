"""Which exceptions ended nothing, who ended a job from outside, and whose host a kernel's log is of."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from dtdebug.recorded.job_logs import second_pass
from dtdebug.recorded.job_logs.api import read_part
from dtdebug.recorded.job_logs.job_view import Job, view, without_followers
from dtdebug.recorded.job_logs.line_judge import shape
from dtdebug.recorded.job_logs.part import Stream, TellingLine
from dtdebug.recorded.log_files.sources import LogSource
from dtdebug_taxonomy.knowledge.hardware import catalogue, parse_event
from dtdebug_taxonomy.model.ranks import Verdict

RANKS = 8
TRACE = ("Traceback (most recent call last):", '  File "/work/data.py", line 8, in get', "    return self.open(url)")
OWN = "FileNotFoundError: [Errno 2] No such file or directory: '/data/7.tar'"
LOST = "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1970, remote process exited"
Rows = Callable[[int], list[str]]


def job(folder: Path, rows: Rows, names: str = "rank_{rank}.log", **others: str) -> Job:
    folder.mkdir()
    for rank in range(RANKS):
        steps = [f"2026-03-01 10:00:{s:02d} step {s} loss 2.1" for s in range(30)]
        file = folder / names.format(rank=rank)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join((*steps, *rows(rank))) + "\n")
    for name, text in others.items():
        (folder / f"{name}.log").write_text(text + "\n")
    return view(read_part([str(folder)], 1))


def firsts(found: Job) -> list[int | None]:
    return [row.rank for row in found.first]


def test_an_exception_that_is_retried_ended_nothing(tmp_path):
    found = job(tmp_path / "a", lambda r: [*TRACE, OWN, "fetch failed, retry 1 of 5"] if r == 3 else [])
    assert firsts(found) == []
    given_up = job(tmp_path / "b", lambda r: [*TRACE, OWN, "giving up, no more retries"] if r == 3 else [*TRACE, LOST])
    assert firsts(given_up) == [3]


def test_a_warning_above_a_traceback_is_of_something_else(tmp_path):
    warned = ["Retrying connection (attempt 1/5): timed out", *TRACE, OWN]
    found = job(tmp_path / "a", lambda r: warned if r == 5 else [*TRACE, LOST])
    assert firsts(found) == [5]


END = "slurmstepd: error: *** STEP 7.0 ON node01 CANCELLED AT 2026-03-01T10:00:31"


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (f"{END} DUE TO TIME LIMIT ***", "time limit"),
        (f"{END} DUE TO PREEMPTION ***", "preempted"),
        (f"{END} ***", "cancelled"),
        ("TERM_RUNLIMIT: job killed after reaching LSF run time limit.", "time limit"),
        ("TERM_PREEMPT: job killed after preemption.", "preempted"),
        ("=>> PBS: job killed: walltime 3611 exceeded limit 3600", "time limit"),
        (
            "[2026-03-01 10:00:31,420] [INFO] [launch.py:328:sigkill_handler] Main process received SIGINT, exiting",
            "interrupted",
        ),
    ],
)
def test_no_rank_is_guilty_of_an_end_from_outside(tmp_path, line, code):
    found = job(
        tmp_path / "a", lambda r: [*TRACE, LOST] if r == 2 else ["Terminated"] if r % 3 == 0 else [], slurm=line
    )
    assert found.ended is not None
    assert found.ended.code == code
    assert firsts(found) == []
    assert found.silent == ()


def test_a_step_that_is_cancelled_after_a_rank_failed_ended_nothing(tmp_path):
    said = f"srun: error: node01: task 3: Exited with exit code 1\n{END} ***"
    found = job(tmp_path / "a", lambda r: [*TRACE, OWN] if r == 3 else [*TRACE, LOST], slurm=said)
    assert found.ended is None
    assert firsts(found) == [3]


def test_the_kernels_report_is_joined_to_the_rank_that_failed_on_its_host(tmp_path):
    killed = "[Sun Mar  1 10:00:29 2026] Memory cgroup out of memory: Killed process 99 (python) total-vm:9kB"
    folder = tmp_path / "a"
    folder.mkdir()
    (folder / "dmesg-r02n05.txt").write_text(killed + "\n")
    for rank in range(RANKS):
        steps = [f"2026-03-01 10:00:{s:02d} step {s} loss 2.1" for s in range(20)]
        rows = [] if rank == 5 else [f"2026-03-01 10:10:3{rank} lost", *TRACE, LOST]
        (folder / f"train_r0{rank // 4 + 1}n0{rank % 4 + (5 if rank > 3 else 1) - 1}_{rank}.log").write_text(
            "\n".join((*steps, *rows)) + "\n"
        )
    found = view(read_part([str(folder)], 1))
    assert [(e.code, e.host, e.rank) for e in found.hardware] == [("OOM killer", "r02n05", 5)]
    assert firsts(found) == [5]


@pytest.mark.parametrize(
    ("line", "code", "role"),
    [
        ("amdgpu 0000:28:00.0: ring gfx_0.0.0 timeout, signaled seq=5, emitted seq=7", "amdgpu ring timeout", "root"),
        ("amdgpu 0000:dd:00.0: amdgpu: GPU reset begin!", "amdgpu reset", "cascade"),
        ("EI0002: [PID: 7] The wait execution of the Notify register times out.", "HCCL EI0002", "cascade"),
        (
            "infiniband efa_0: Failed to process command ALLOC_PD (opcode 14) comp_status 1 err -12",
            "EFA command",
            "root",
        ),
        ("INTERNAL: Core halted unexpectedly: INTERNAL: Accelerator device halted", "TPU core halted", "root"),
        ("CPU2: Package temperature above threshold, cpu clock throttled", "CPU too hot", "note"),
    ],
)
def test_other_accelerators_are_in_the_catalogue(line, code, role):
    event = parse_event(line)
    assert event is not None
    assert (event.code, event.role) == (code, role)
    assert parse_event("[drm] Initialized amdgpu 3.64.0 for 0000:12:00.0 on minor 0") is None
    assert all(known.url.startswith("https://") for _, known in catalogue().lines)


def shared(folder: Path, lines: list[str]) -> Job:
    folder.mkdir()
    (folder / "slurm-7.out").write_text("\n".join(lines) + "\n")
    return view(read_part([str(folder)], 1))


def test_a_bar_that_is_closed_is_no_progress(tmp_path):
    """tqdm prints its bar once more when an exception ends the loop; where the loop goes on, the bar does."""
    closed = [*TRACE, OWN, "", "  4%|▍    | 40/1000 [00:29<11:40,  1.37it/s]"]
    found = job(tmp_path / "a", lambda r: closed if r == 3 else [*TRACE, LOST])
    assert firsts(found) == [3]
    went_on = [*closed, "  5%|▌    | 50/1000 [00:39<11:40,  1.37it/s]"]
    assert firsts(job(tmp_path / "b", lambda r: went_on if r == 3 else [])) == []


def test_an_earlier_program_of_the_batch_script_ended_nothing(tmp_path):
    script = ["+ srun --ntasks=1 prepare", "srun: error: node01: task 0: Exited with exit code 1"]
    begin = [f"{r}: Initializing distributed: GLOBAL_RANK: {r}, MEMBER: {r + 1}/{RANKS}" for r in range(RANKS)]
    steps = [f"{r}: step {s} loss 2.1" for s in range(40) for r in range(1, RANKS)]
    done = [f"{r}: all results are written" for r in range(RANKS)]
    found = shared(tmp_path / "a", [*script, *begin, *steps, *done])
    assert (found.ranks, firsts(found), found.cascade, found.went_on) == (RANKS, [], (), 39)
    late = shared(tmp_path / "b", [*begin, *steps, *done, script[1]])
    assert firsts(late) == [0]
    assert late.spans[0].host == "node01"  # the launcher alone names it


def test_the_rank_of_a_pod_that_only_its_name_tells(tmp_path):
    pods = [f"[pod/train-worker-{r}/pytorch] " for r in range(RANKS)]
    lines = [f"{pod}step {s} loss 2.1" for s in range(9) for pod in pods]
    lines += [f"{pods[5]}{line}" for line in (*TRACE, OWN)]
    lines += [f"{pods[r]}[rank{r}]: {line}" for r in range(RANKS) if r != 5 for line in (*TRACE, LOST)]
    found = shared(tmp_path / "a", lines)
    assert (found.ranks, firsts(found)) == (RANKS, [5])
    healthy = shared(tmp_path / "b", lines[: 9 * RANKS])
    assert (healthy.ranks, healthy.went_on) == (RANKS, 8)


def test_a_list_is_not_of_ranks(tmp_path):
    layers = [f"    {n:2}: ParallelLayer" for n in range(70)]
    found = shared(tmp_path / "a", [f"{n:2}: step {s} loss 2.1" for s in range(9) for n in range(16)] + layers)
    assert found.ranks == 16


def test_many_telling_lines_are_bounded_and_none_who_prints_is_lost(tmp_path):
    """Of those of which each prints the same the first and the last lines are kept; the one who printed once, too."""
    lines = [f"2026-03-01 10:00:00 [rank{n % 8}]: ValueError: shard {n} is truncated" for n in range(16_000)]
    lines.insert(12_000, "2026-03-01 10:00:00 [rank9]: ValueError: shard 1 is truncated")
    log = tmp_path / "job.log"
    log.write_text("\n".join(lines) + "\n")
    kept = second_pass.lines_of_shapes(LogSource(log.name, str(log)), {shape(lines[0].encode())})
    ranks = Counter(row.raw[25:26] for row in kept)
    assert len(ranks) == 9
    assert ranks[b"9"] == 1
    assert len(kept) < 5_000
    assert (kept[0].number, kept[-1].number) == (1, 16_001)


def test_steps_of_megatron_are_padded(tmp_path):
    rows = [f" iteration {s:8}/    1000 | elapsed time per iteration (ms): 3171.3 | lm loss: 2.1" for s in range(30)]
    assert shared(tmp_path / "a", rows).went_on == 29


def test_a_rank_whose_like_was_read_and_not_accused_is_not_accused_for_its_end():
    """Of a kind only some ranks keep their text."""
    told = (TellingLine(1, "Watchdog caught collective operation timeout"),)
    ranks = {r: Stream(file="job.out", rank=r, kind="late", told=told if r < 2 else ()) for r in range(4)}
    ranks[4] = Stream(file="job.out", rank=4, kind="own", told=(TellingLine(2, "KeyError: 'x'"),))
    verdict = Verdict(kind="dead", culprits=(2, 3, 4), waiting=(0, 1), summary="Ranks 2-4 ended.")

    found = without_followers(verdict, ranks)

    assert (found.culprits, found.waiting, found.summary) == ((4,), (0, 1, 2, 3), "Rank 4 ended.")


TIMED_OUT = (
    "2026-03-01T10:40:00Z [rank{0}]:[E301 10:40:00.1 ProcessGroupNCCL.cpp:632] [Rank {0}] Watchdog caught collective "
    "operation timeout: WorkNCCL(SeqNum=901, OpType=ALLREDUCE, NumelIn=9, NumelOut=9, Timeout(ms)=600000) ran for "
    "600040 milliseconds before timing out.\n"
)


def timed(steps):
    return "".join(f"2026-03-01T10:{s * 2 // 60:02}:{s * 2 % 60:02}Z step {s} loss 2.1\n" for s in steps)


def test_a_rank_that_prints_seldom_has_not_stopped(tmp_path):
    """Its last step is one stride behind; the time-out is one of four other ranks."""
    for rank in range(8):
        every = 70 if rank == 6 else 1
        text = timed(range(0, 301, every)) + (TIMED_OUT.format(rank) if rank < 4 else "")
        (tmp_path / f"rank{rank}.log").write_text(text)
    found = view(read_part([str(tmp_path)], 1))
    assert found.silent == found.behind == ()
    assert 6 not in found.verdict.culprits


def test_what_a_rank_prints_after_a_time_out_is_not_what_it_did_instead(tmp_path):
    """A tracker says its last words when the job is torn down."""
    for rank in range(8):
        own = "2026-03-01T10:09:40Z evaluating shard 3\n2026-03-01T10:40:08Z tracker: sync finished\n"
        text = timed(range(280 if rank == 5 else 301)) + (own if rank == 5 else TIMED_OUT.format(rank))
        (tmp_path / f"rank{rank}.log").write_text(text)
    found = view(read_part([str(tmp_path)], 1))
    assert found.verdict.culprits == (5,)
    assert "tracker" not in found.verdict.summary
