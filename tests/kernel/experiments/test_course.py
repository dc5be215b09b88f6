"""Recording, comparing, replaying and rehearsing collectives: real jobs, and recordings that are not to be trusted."""

import json
import os
import pickle
import stat
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from dtdebug.errors import UsageError
from dtdebug.experiments.collectives import diff, job_program, recording_format, rehearsal_match, source_branches
from dtdebug.experiments.collectives.inside import object_hash
from dtdebug.experiments.collectives.inside.gpu_hash import PendingPrints
from dtdebug.experiments.collectives.inside.record import Recorder, raw
from dtdebug.experiments.collectives.inside.tensor_hash import fingerprint
from dtdebug.experiments.collectives.recording_format import Key
from dtdebug.experiments.collectives.rehearsal_match import RankCall

SECONDS = 180
PROGRAM = """
import os, sys
import torch, torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel as DDP

def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = DDP(torch.nn.Linear(6, 5))
    sharded = torch.nn.Linear(5, 4)
    fully_shard(sharded)
    everyone = dist.new_group(list(range(world)))
    optimizer = torch.optim.SGD([*model.parameters(), *sharded.parameters()], lr=0.1)
    for step in range(3):
        x = torch.randn(3, 6)
        if os.environ.get("MOVED") and rank == 1 and step == 1:
            x[0, 0] += 1e-6
        loss = sharded(model(x)).square().mean()
        optimizer.zero_grad()
        loss.backward()  # backward
        optimizer.step()
        work = dist.all_reduce(loss.detach().clone(), group=everyone, async_op=True)
        objects = [None] * world
        dist.all_gather_object(objects, "x" * (rank + 1))
        work.wait()
    total = loss.detach().clone()
    dist.all_reduce(total)
    if "--skip" in sys.argv and rank != world - 1:
        dist.all_reduce(torch.ones(()))  # skipped
    if total.item() > 1e6:  # decides
        print("diverged")
    print(total.item())
    if world == 2:
        if rank == 0:
            dist.send(torch.ones(3), 1)
        else:
            dist.recv(torch.empty(3), 0)
    dist.barrier()
    dist.destroy_process_group()

main()
"""
ranks = pytest.mark.ranks
needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")


def line(marker):
    return next(n for n, text in enumerate(PROGRAM.splitlines(), 1) if f"# {marker}" in text)


def dtdebug(*arguments, cwd, typed="", **variables):
    command = [sys.executable, "-m", "dtdebug", *arguments]
    env = {**os.environ, "DTDEBUG_STATE": str(cwd / "state"), **variables}
    return subprocess.run(
        command, cwd=cwd, env=env, input=typed, capture_output=True, text=True, timeout=SECONDS, check=False
    )


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Three recorded runs of one program: twice the same, once with an input of one rank moved by 1e-6."""
    place = tmp_path_factory.mktemp("course")
    (place / "train.py").write_text(PROGRAM)
    job = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "train.py")
    said = {}
    for name, variables in (("a", {}), ("b", {}), ("c", {"MOVED": "1"})):
        done = dtdebug("run", "--record", name, "--", *job, cwd=place, OMP_NUM_THREADS="1", **variables)
        assert 0 == done.returncode, done.stderr
        said[name] = done.stderr
    return place, said


@ranks
@needs_torch
def test_two_runs_are_the_same_or_part_at_one_place(runs):
    """The first difference is in the backward that follows the moved value, on its rank; its cost is said."""
    place, said = runs
    same = dtdebug("diff", "a", "b", "--format", "json", cwd=place)
    parted = dtdebug("diff", "a", "c", "--format", "json", cwd=place)
    told, first = json.loads(same.stdout), json.loads(parted.stdout)["first"]

    assert (0, True, None) == (same.returncode, told["same"], told["first"])
    assert told["compared"] > 40
    assert 1 == parted.returncode
    assert (1, "value", str(place / "train.py"), line("backward")) == (
        first["rank"], first["what"], first["file"], first["line"],
    )  # fmt: skip
    assert "dtdebug: recorded" in said["a"]
    assert all(0o600 == stat.S_IMODE(p.stat().st_mode) for p in (place / "a").iterdir())


@ranks
@needs_torch
def test_a_rank_is_replayed_alone(runs):
    """Bit by bit; another program than the recorded one stops in pdb in its own frame, and is told."""
    place, _ = runs
    done = dtdebug("replay", "a", "--rank", "1", "--format", "json", cwd=place)
    given = ("--format", "json", "--pdb", "--command", "train.py")
    other = dtdebug("replay", "a", "--rank", "1", *given, cwd=place, typed="p 'here', type(model)\nc\n", MOVED="1")
    told, moved = json.loads(done.stdout), json.loads(other.stdout[other.stdout.index('{"v"') :])

    assert (0, 1, None, "") == (done.returncode, told["rank"], told["first_difference"], told["why"])
    assert told["inputs"] == told["identical"] >= 20
    assert f"train.py({line('backward')})" in other.stdout
    assert "('here', <class '" in other.stdout
    assert (1, "value", line("backward")) == (
        other.returncode, moved["first_difference"]["what"], moved["first_difference"]["line"],
    )  # fmt: skip


@ranks
@needs_torch
def test_a_rehearsal_finds_the_rank_that_skips_a_collective(runs):
    """Of 64 ranks; the same program without that is found to fit, and what depends on values is named."""
    place, _ = runs
    common = ("rehearse", "--world", "64", "--ranks", "0,63", "--format", "json", "--", "train.py")
    healthy = dtdebug(*common, cwd=place)
    skipping = dtdebug(*common, "--skip", cwd=place)
    told, found = json.loads(healthy.stdout), json.loads(skipping.stdout)

    assert (0, 64, [0, 63], None) == (healthy.returncode, told["world"], told["rehearsed"], told["deadlock"])
    assert [{"file": str(place / "train.py"), "line": line("decides")}] == told["value_dependent"]
    assert 1 == skipping.returncode
    assert ([63], line("skipped")) == (found["deadlock"]["ranks"], found["deadlock"]["line"])
    assert "allreduce_" == found["deadlock"]["calls"]["0"]


def key(op="allreduce_", group=(0, 1), at=1, **more):
    return Key(k=0, op=op, group=group, file="t.py", line=at, shapes=more.pop("shapes", ((2,),)), **more)


WAITS = key(at=1, waits=True), key(at=2, ordinal=1, waits=True)


def course(*keys):
    return [RankCall(n, k) for n, k in enumerate(keys, 1)]


@pytest.mark.parametrize(
    ("left", "right", "line"),
    [
        ([key(at=1), key(at=2), key(at=3)], [key(at=1), key(at=3)], 2),
        ([key(at=1), key("barrier", at=2)], [key(at=1), key("broadcast_", at=3)], 2),
        ([key(at=1), key(at=2, shapes=((3,),))], [key(at=1), key(at=2)], 2),
        ([WAITS[0], WAITS[1]], [WAITS[1], WAITS[0]], 1),
    ],
)
def test_ranks_that_do_not_fit(left, right, line):
    found = rehearsal_match.deadlock({0: course(*left), 1: course(*right)}, frozenset((0, 1)))

    assert found is not None
    assert line == found.line


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ([key(at=1), key(at=2)], [key(at=1), key(at=9)]),  # the same call in two branches
        ([key(at=1), key(at=2, ordinal=1)], [key(at=2, ordinal=1), key(at=1)]),  # neither is waited for
        ([key(group=(0, 1)), key(group=(0,))], [key(group=(0, 1))]),
        ([key("send", peer=1)], [key("recv_", peer=0)]),
    ],
)
def test_ranks_that_fit(left, right):
    assert rehearsal_match.deadlock({0: course(*left), 1: course(*right)}, frozenset((0, 1))) is None


def test_a_rank_that_failed_is_no_proof_that_it_skips():
    calls = {0: course(key(at=1), key(at=2)), 1: course(key(at=1))}

    assert rehearsal_match.deadlock(calls, frozenset((0,))) is None
    assert rehearsal_match.deadlock(calls, frozenset((0, 1))) is not None


def write(folder, rank, rows, header=None):
    folder.mkdir(exist_ok=True)
    head = header or {"v": 1, "rank": rank, "world": 2}
    (folder / f"rank-{rank}.0.head.jsonl").write_bytes(msgspec.json.encode(head) + b"\n")
    (folder / f"rank-{rank}.0.0.jsonl").write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))


def rows(*prints, shape=(2,), op="allreduce_"):
    first = {"k": 0, "op": op, "group": [0, 1], "shapes": [shape], "dtypes": ["float32"], "file": "t.py", "line": 4}
    return [first, *([n, 0, [p]] for n, p in enumerate(prints, 1))]


@pytest.mark.parametrize(
    ("other", "what", "index"),
    [
        (rows(1, 2, 9), "value", 3),
        (rows(1, 2, shape=(3,)), "shape", 1),
        (rows(1, 2, 3, op="broadcast_"), "order", 1),
        (rows(1, 2), "missing", 3),
    ],
)
def test_what_differs(tmp_path, other, what, index):
    write(tmp_path / "a", 0, rows(1, 2, 3))
    write(tmp_path / "b", 0, other)
    first = diff.runs(tmp_path / "a", tmp_path / "b").first

    assert (0, index, what, "t.py", 4) == (first.rank, first.index, first.what, first.file, first.line)


def test_a_captured_graph_stops_the_recording_in_words(tmp_path):
    """Before the values are read, which would break the capture."""
    cuda = SimpleNamespace(is_current_stream_capturing=lambda: True)
    recorder = Recorder({"folder": str(tmp_path)}, SimpleNamespace(cuda=cuda, initial_seed=int, uint8=None))
    with pytest.raises(RuntimeError, match="a CUDA graph is captured"):
        recorder._prints(SimpleNamespace(op="allreduce_"), [SimpleNamespace(device=SimpleNamespace(type="cuda"))])


@needs_torch
def test_objects_are_alike_whatever_lies_behind_them_and_wherever_their_tensors_lie():
    """A pickled tensor holds an address; another value, or the same tensor twice, is a difference."""
    import torch

    call, kept = SimpleNamespace(op="gather_"), []

    def gather_object(thing):
        data = pickle.dumps(thing)
        local_size = torch.tensor([len(data)])
        sent = torch.frombuffer(bytearray(data + os.urandom(9)), dtype=torch.uint8)
        kept.append(thing)
        assert len(data) == local_size  # read from this frame, as from torch's function of that name
        return object_hash.fingerprints(call, [sent], torch)[0]

    one, again = ({"loss": torch.ones(3), "at": torch.zeros(2), "n": 3} for _ in range(2))
    shared = torch.ones(3)
    assert pickle.dumps(one) != pickle.dumps(again)
    assert gather_object(one) == gather_object(again)
    assert gather_object(one) != gather_object({**again, "loss": torch.full((3,), 1.0000001)})
    assert gather_object([torch.ones(3), torch.ones(3)]) != gather_object([shared, shared])
    assert gather_object({**one, "n": "123456789012"}) != gather_object({**one, "n": "123456789013"})
    assert gather_object("plain") == gather_object("plain") != gather_object("other")


@needs_torch
def test_fingerprints_for_which_nobody_waits_are_the_same():
    torch = pytest.importorskip("torch")
    told = [torch.arange(200_001.0), torch.zeros(0), torch.ones(3, dtype=torch.bfloat16), torch.empty(2, device="meta")]
    awaited = PendingPrints(told, torch)
    assert awaited.ready()
    assert awaited.prints() == [*map(fingerprint, told[:3]), None]
    assert len({*awaited.prints()}) == 4


def sent(torch, number):
    """What the recorder sees of a call."""
    return SimpleNamespace(
        op="allreduce_", number=number, inputs=[torch.full((3,), float(number))], outputs=[], site=lambda: ("a.py", 3),
        group=SimpleNamespace(rank=0, ranks=(0, 1), ordinal=0), value=lambda name, default=None: default,
    )  # fmt: skip


def test_fingerprints_that_come_late_count_for_record_and_digest(tmp_path):
    torch = pytest.importorskip("torch")
    come = []

    class Slow(PendingPrints):
        def ready(self, patience=0.0):
            return bool(come)

    def recorded(folder, kind):
        folder.mkdir()
        recorder = Recorder({"folder": folder, "data": 0}, torch)
        if kind is not None:
            recorder._prints = lambda call, inputs: kind(inputs, torch)
        for number in range(1, 1001):
            recorder.before(sent(torch, number))
            come.extend([True] * (number == 900))
        recorder.finish()
        return recording_format.load(folder, "rank-0.0")

    at_once, later = recorded(tmp_path / "a", None), recorded(tmp_path / "b", Slow)
    assert [r.prints for r in later.records] == [r.prints for r in at_once.records]
    assert later.checkpoints == at_once.checkpoints != {}


def test_a_fingerprint_is_of_the_values_however_they_lie():
    """A single value of a column counts as contiguous and can't be viewed as bytes; nor can what begins oddly."""
    import torch

    rows = torch.arange(70_000.0).view(-1, 2)
    odd = torch.arange(40_001, dtype=torch.uint8)
    for part in (rows[:1, 1:], rows[:1, 1], rows[:, 1], rows[3:, :], odd[1:], odd[3:8]):
        assert fingerprint(part) == fingerprint(part.clone(memory_format=torch.contiguous_format))
    assert fingerprint(rows[:1, ::2][:, :1]) == fingerprint(torch.zeros(1)) != fingerprint(torch.ones(1))
    assert fingerprint(rows[:40]) != fingerprint(rows[:40].flip(0))


def test_a_tensor_whose_bytes_were_kept_can_still_be_resized():
    """FSDP1 frees its gathered parameters so, and would end with an exception."""
    torch = pytest.importorskip("torch")
    tensor = torch.arange(3, dtype=torch.float32)

    assert [bytes(part) for part in raw(tensor, torch)] == [bytes(tensor.clone().numpy())]
    assert [bytes(part) for part in raw(tensor[1::2], torch)] == [bytes(tensor[1:2].clone().numpy())]
    tensor.untyped_storage().resize_(0)
    assert tensor.untyped_storage().size() == 0


def test_calls_of_several_threads_are_compared_each_with_its_own(tmp_path):
    """Which thread comes first is another one in each run; what one thread calls is not."""
    keys = [{**rows()[0], "k": n, "line": 4 + n, "thread": name} for n, name in enumerate(("one", "two"))]
    write(tmp_path / "a", 0, [*keys, [1, 0, [7]], [2, 0, [8]], [3, 1, [9]]])
    write(tmp_path / "b", 0, [*keys, [1, 1, [9]], [2, 0, [7]], [3, 0, [8]]])
    write(tmp_path / "c", 0, [*keys, [1, 1, [9]], [2, 0, [7]], [3, 0, [5]]])

    assert diff.runs(tmp_path / "a", tmp_path / "b").first is None
    first = diff.runs(tmp_path / "a", tmp_path / "c").first
    assert (2, "value", 4) == (first.index, first.what, first.line)


def test_the_first_difference_is_that_which_the_others_follow(tmp_path):
    """Rank 1 has called more before, so its number is greater."""
    more = [{"k": 1, "op": "allreduce_", "group": [1], "file": "t.py", "line": 2}, *([n, 1, []] for n in range(1, 9))]
    for name, values, late in (("a", (1, 2), 3), ("b", (1, 9), 8)):
        write(tmp_path / name, 0, rows(1, 5, late))
        write(tmp_path / name, 1, [*more, rows()[0], *([n, 0, [p]] for n, p in enumerate((*values, late), 9))])
    found = diff.runs(tmp_path / "a", tmp_path / "b")

    assert (1, 10) == (found.first.rank, found.first.index)
    assert [0] == [other.rank for other in found.others]


@pytest.mark.parametrize(
    "tail", [b"[4, 0, [1", b"\xff\xfe\n", b'{"k": "x"}\n', b"[1, 77, []]\n", b"[" * 5000 + b"\n", b'["d", 1, 3]\n']
)  # fmt: skip
def test_a_recording_that_is_broken_is_read_up_to_there(tmp_path, tail):
    write(tmp_path / "a", 0, rows(1, 2, 3))
    with (tmp_path / "a" / "rank-0.0.0.jsonl").open("ab") as file:
        file.write(tail)

    assert 3 == len(recording_format.load(tmp_path / "a", "rank-0.0").records)


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ({"v": 2, "rank": 0, "world": 2}, "version 2; this dtdebug reads version 1"),
        ({"v": 1, "rank": -4, "world": 2}, "can't be"),
        (["no"], "no header of a recording"),
    ],
)
def test_a_header_that_is_of_no_use_is_one_line(tmp_path, header, said):
    write(tmp_path / "a", 0, rows(1), header)

    with pytest.raises(UsageError, match=said):
        recording_format.load(tmp_path / "a", "rank-0.0")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: (d / "rank-0.0.data").unlink(), "rank-0.0.data: what collectives gave can't be read: No such file"),
        (lambda d: ((d / "rank-0.0.data").unlink(), os.mkfifo(d / "rank-0.0.data")), "is not a regular file"),
        (lambda d: write(d, 0, rows(1), {"v": 1, "rank": 1, "world": 2}), "is the header of rank 1, not of this one"),
        (lambda d: write(d, 0, rows(1), {"v": 1, "rank": 0, "world": 1 << 40}), "can't be"),
        (lambda d: write(d, 0, rows(1), {"v": 1, "rank": 0, "world": 2, "seed": 1 << 70}), "no generator has"),
        (lambda d: write(d, 0, ["?"]), "no collective of rank-0.0 can be read"),
        (lambda d: write(d, 0, rows(1), {"v": 1, "rank": 0, "world": 2, "command": ["sh", "x"]}), "no Python program"),
        (lambda d: write(d, 0, rows(1), {"v": 1, "rank": 0, "world": 2, "command": ["p", "no.py"]}), "no such file"),
    ],
)  # fmt: skip
def test_what_cannot_be_replayed_is_one_line_and_nothing_is_run(tmp_path, change, said):
    """A pipe in place of the data, no data, the header of another rank, numbers that can't be, another program."""
    (tmp_path / "train.py").write_text("raise SystemExit('was run')")
    write(
        tmp_path / "a", 0, [*rows(1), ["d", 1, [[0, 8]]]], {"v": 1, "rank": 0, "world": 2, "command": ["p", "train.py"]}
    )
    (tmp_path / "a" / "rank-0.0.data").write_bytes(b"12345678")
    change(tmp_path / "a")
    done = dtdebug("replay", "a", "--rank", "0", cwd=tmp_path)

    assert (2, "") == (done.returncode, done.stdout)
    assert said in done.stderr.splitlines()[-1]
    assert "was run" not in done.stderr
    assert "internal error" not in done.stderr


def test_a_recording_that_broke_off_does_not_differ_by_what_it_lacks(tmp_path):
    """The disk was full, or the end of a file was lost: what would have come is not known."""
    write(tmp_path / "a", 0, rows(1, 2, 3))
    for name, end in (("full", {"collectives": 2, "stopped": "No space left on device"}), ("lost", {"collectives": 3})):
        write(tmp_path / name, 0, rows(1, 2))
        (tmp_path / name / "rank-0.0.cost.json").write_bytes(msgspec.json.encode(end))
        found = diff.runs(tmp_path / "a", tmp_path / name)
        assert (None, 2, False, 1) == (found.first, found.compared, found.whole, len(found.notes))
    (tmp_path / "lost" / "rank-0.0.cost.json").write_bytes(b" " * 1024)  # it was killed there, as one that hangs

    assert "missing" == diff.runs(tmp_path / "a", tmp_path / "lost").first.what
    write(tmp_path / "none", 0, [])
    with pytest.raises(UsageError, match="no collective"):
        diff.runs(tmp_path / "none", tmp_path / "none")


def test_checkpoints_show_a_difference_whose_records_are_gone(tmp_path):
    """A long run keeps its first and last records."""
    for name, digest in (("a", 5), ("b", 6)):
        write(tmp_path / name, 0, [rows()[0], [1, 0, [7]], [5000, 0, [8]]])
        with (tmp_path / name / "rank-0.0.head.jsonl").open("ab") as file:
            file.write(b"[1000,3]\n[2000,%d]\n" % digest)
    first = diff.runs(tmp_path / "a", tmp_path / "b").first

    assert (1000, 2000) == (first.since, first.index)
    assert diff.runs(tmp_path / "a", tmp_path / "a").first is None


def test_a_full_disk_stops_the_recording_and_not_the_job(tmp_path):
    """Files may grow to 12 KiB: the job ends well, the recording says up to where it goes, is of use so far."""
    pytest.importorskip("torch")
    (tmp_path / "train.py").write_text(
        "import torch, torch.distributed as d\nd.init_process_group('gloo')\n"
        "for _ in range(400):\n    d.all_reduce(torch.ones(3))\nprint('the end')\nd.destroy_process_group()\n"
    )
    job = f"{sys.executable} -m torch.distributed.run --standalone --nproc-per-node 1 train.py"
    command = f"ulimit -f 12; {sys.executable} -m dtdebug run --record r --data 0 -- {job}"
    done = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, env={**os.environ, "DTDEBUG_STATE": str(tmp_path / "state")},
        capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    course = recording_format.load(tmp_path / "r", "rank-0.0")

    assert (0, True) == (done.returncode, "the end" in done.stdout)
    assert 1 == done.stderr.count("the recording has stopped")
    assert "Traceback" not in done.stderr
    assert "rank-0.0 only up to collective" in done.stderr
    assert "File too large" == course.end.stopped
    assert 1 < len(course.records) == course.end.collectives < 400
    assert not course.damaged


def test_on_a_release_without_what_is_needed_the_job_goes_on_and_says_so(tmp_path):
    """A stand-in for an old release, which has the name and no dispatcher that can be followed."""
    (tmp_path / "torch.py").write_text("__version__ = '2.3.1'\n")
    (tmp_path / "train.py").write_text("import torch\nprint('the end')\n")
    done = dtdebug("run", "--record", "r", "--", sys.executable, "train.py", cwd=tmp_path)

    assert (0, "the end\n") == (done.returncode, done.stdout)
    assert 1 == done.stderr.count("not on this release: PyTorch 2.3.1 has no torch."), done.stderr
    assert "no rank began a collective" in done.stderr


def test_what_is_no_recording_is_said(tmp_path):
    done = dtdebug("diff", str(tmp_path), str(tmp_path), cwd=tmp_path)

    assert (2, 1) == (done.returncode, len(done.stderr.splitlines()))
    assert "no recording" in done.stderr


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["torchrun", "--nproc-per-node", "8", "train.py", "--lr", "1"], ["train.py", "--lr", "1"]),
        (["python", "-m", "torch.distributed.run", "--standalone", "train.py"], ["train.py"]),
        (["torchrun", "--standalone", "-m", "pkg.train", "x"], ["-m", "pkg.train", "x"]),
        (["accelerate", "launch", "a/b.py"], ["a/b.py"]),
    ],
)
def test_the_program_of_a_command(command, expected):
    assert expected == job_program.of(command)[1:]


def test_lines_that_decide(tmp_path):
    path = Path(tmp_path / "p.py")
    path.write_text("x = t.item()\nif x > 3:\n    pass\nprint(t.item())\nwhile t.item():\n    y = t.item()\n")

    assert [1, 5] == [at for _, at in source_branches.deciding([(str(path), n) for n in (1, 4, 5, 6)])]
