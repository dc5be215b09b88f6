"""`dtdebug slow` on the files of NCCL's Inspector: which rank or communicator is slow, and how much was understood."""

import gzip
import json
import random

import pytest

from dtdebug.cli.slow import run
from dtdebug.recorded.things import recognise

SIZE = 256 << 20


def record(communicator, rank, ranks, host, operation, number, microseconds, **more):
    """One line as the Inspector's documentation shows it."""
    nodes = 2 if communicator == "0xall" else 1
    return json.dumps({
        "header": {"id": communicator, "rank": rank, "n_ranks": ranks, "nnodes": nodes},
        "metadata": {
            "inspector_output_format_version": "v4.0", "git_rev": "", "rec_mechanism": "nccl_profiler_interface",
            "dump_timestamp_us": 1_752_867_229_276_385 + number, "hostname": host, "pid": 400 + rank,
        },
        "coll_perf": {
            "coll": operation, "coll_sn": number, "coll_msg_size_bytes": SIZE, "coll_exec_time_us": int(microseconds),
            "coll_algobw_gbs": SIZE / microseconds / 1e3, "coll_busbw_gbs": 1.75 * SIZE / microseconds / 1e3, **more,
        },
    })  # fmt: skip


def job(folder, fault="", seed=1, count=200, **more):
    """Eight ranks of two hosts, in one communicator of all and four of two ranks; each rank leaves out some records."""
    draw = random.Random(seed)
    lines = {rank: [] for rank in range(8)}
    groups = [("0xall", list(range(8)))] + [(f"0xpair{n}", [2 * n, 2 * n + 1]) for n in range(4)]
    for name, members in groups:
        for number in range(1, count + 1):
            transfer = 20_000 * draw.lognormvariate(0, 0.05)
            transfer *= 2.5 if (fault == "slow" and name == "0xpair2") or (fault == "since" and number > 120) else 1
            arrivals = [draw.expovariate(1 / 500) for _ in members]
            if fault == "late" and name == "0xall":
                arrivals[5] += 30_000
            end = max(arrivals) + transfer
            for place, rank in enumerate(members):
                if draw.random() < 0.8:
                    host = f"node-{rank // 4}"
                    row = record(name, place, len(members), host, "AllReduce", number, end - arrivals[place], **more)
                    lines[rank].append(row)
    folder.mkdir(exist_ok=True)
    for rank, rows in lines.items():
        (folder / f"node-{rank // 4}-pid{400 + rank}.log").write_text("\n".join(rows) + "\n")
    return folder


def result(folder):
    text, found = run([folder], as_json=True)
    told = json.loads(text)
    assert found == (told["status"] != "healthy" and told["status"] != "no_failure")
    return told


@pytest.mark.parametrize("seed", range(5))
def test_nobody_is_slow_in_a_healthy_job(tmp_path, seed):
    """All is well by a measure, which is shown."""
    told = result(job(tmp_path / "job", seed=seed))
    assert (told["status"], told["slow"]) == ("healthy", [])
    assert told["understood"]["known"] == told["understood"]["lines"] > 1000
    assert "lines are known" in run([tmp_path / "job"], as_json=False)[0].splitlines()[0]


def test_the_rank_that_the_others_wait_for_is_late(tmp_path):
    """Its own time in the collectives is the shortest."""
    told = result(job(tmp_path / "job", "late"))
    (late,) = told["slow"]
    assert (told["status"], late["kind"], late["rank"], late["host"]) == ("late", "late_rank", 5, "node-1")
    assert late["share"] == pytest.approx(0.6, abs=0.1)


def test_a_slow_communicator_is_told_from_its_peers(tmp_path):
    """The same collective, size and layout reach more elsewhere."""
    (slow,) = result(job(tmp_path / "job", "slow"))["slow"]
    assert (slow["kind"], slow["communicator"]) == ("slow_communicator", "0xpair2")
    assert slow["share"] == pytest.approx(0.4, abs=0.05)


def test_a_bandwidth_that_falls_is_dated(tmp_path):
    """By the number of the collective."""
    found = result(job(tmp_path / "job", "since"))["slow"]
    assert {row["kind"] for row in found} == {"slower_since"}
    assert any(f"#{number}:" in row["means"] for row in found for number in range(119, 124))


def test_times_of_the_host_do_not_accuse_a_rank(tmp_path):
    """They begin when a collective is enqueued: one that is early or late looks alike."""
    told = result(job(tmp_path / "job", "late", coll_timing_source="collective_cpu"))
    assert (told["status"], told["slow"]) == ("no_failure", [])
    assert any("enqueued" in note for note in told["notes"])


def test_the_record_of_one_rank_clears_nobody(tmp_path):
    """Who is late shows only beside the others."""
    folder = job(tmp_path / "job", "late")
    for path in sorted(folder.iterdir())[1:]:
        path.unlink()
    told = result(folder)
    assert (told["status"], told["slow"]) == ("no_failure", [])
    assert "no rank is cleared" in run([folder], as_json=False)[0]


def test_lines_of_something_else_are_counted(tmp_path):
    """Below half no statement is made; the cut last line of a job that still runs is no loss."""
    folder = job(tmp_path / "job", count=20)
    path = min(folder.iterdir())
    whole = path.read_text()
    path.write_text(whole[:-40])
    assert result(folder)["status"] == "healthy"
    path.write_text(whole + '{"header": 1}\nsomething else\n' * 5000)
    told = result(folder)
    assert told["status"] == "not_understood"
    assert run([folder], as_json=False)[0].startswith("Not understood: ")


@pytest.mark.parametrize(
    "broken",
    [
        {"coll_exec_time_us": 0}, {"coll_exec_time_us": -5}, {"coll_sn": "x"}, {"coll_msg_size_bytes": -1},
        {"coll_exec_time_us": None}, {"coll": 3},
    ],
)  # fmt: skip
def test_figures_that_can_not_be_so_are_left_out(tmp_path, broken):
    """They are counted as not known."""
    folder = job(tmp_path / "job", count=3)
    path = min(folder.iterdir())
    good = path.read_text().splitlines()
    row = json.loads(good[0])
    row["coll_perf"].update(broken)
    path.write_text("\n".join([*good, json.dumps(row)]))
    counts = result(folder)["understood"]
    assert counts["lines"] - counts["known"] == 1


def test_the_files_are_recognised_by_what_is_in_them(tmp_path):
    """Packed or not, alone or in a folder."""
    folder = job(tmp_path / "job", count=5)
    path = min(folder.iterdir())
    packed = tmp_path / "packed.log.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    (one,), (two,), (all_,) = recognise([str(path)]), recognise([str(packed)]), recognise([str(folder)])
    assert (one.kind, two.kind, all_.kind) == ("trace", "trace", "traces")
    assert run([packed], as_json=False)[0].startswith("No collective was recorded by all ranks")
