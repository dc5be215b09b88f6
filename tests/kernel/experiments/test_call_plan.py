"""The calls of a job as a file: what `rehearse --save` writes, how ranks are compared with it, changes in words."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dtdebug.errors import UsageError
from dtdebug.experiments.call_plan.changes import changes
from dtdebug.experiments.call_plan.follow import Follower
from dtdebug.experiments.call_plan.formulas import evaluate, formula, number_of, substitute
from dtdebug.experiments.call_plan.make import Varied, fold, make_plan, planned_call
from dtdebug.experiments.call_plan.options import whole_values, with_value
from dtdebug.experiments.call_plan.outside import Outside, branches
from dtdebug.experiments.call_plan.plan import Head, Loop, PlannedCall, read, with_options, write
from dtdebug.experiments.collectives.recording_format import Key


def key(op="allreduce_", shape=(4,), line=7, group=(0, 1), peer=None):
    return Key(k=0, op=op, group=group, shapes=(shape,), dtypes=("float32",), file="/x/train.py", line=line, peer=peer)


def course(rounds, world=2, width=4):
    """The calls of one rank: a broadcast, then rounds of two sums, then a barrier."""
    group = tuple(range(world))
    round_ = [key(shape=(width,), line=8, group=group), key(line=9, group=group)]
    return [key("broadcast_", peer=0, group=group), *rounds * round_, key("barrier", (), 12, group)]


def test_a_plan_is_read_as_it_was_written_and_holds_for_other_sizes(tmp_path):
    """Rounds and sizes are formulas where two rehearsals agree on one."""
    small = {rank: course(6, 2, 8) for rank in (0, 1)}
    large = {rank: course(3, 4, 16) for rank in range(4)}
    head = Head(command=("train.py",), world=2, outside=("train.py:3-4",))
    plan, unfit = make_plan(small, head, [Varied("W", 2, 4, large)])
    assert unfit == []
    (role,) = plan.role
    loop = role.calls[1]
    assert (role.ranks, loop.repeat, loop.calls[0].sizes) == (("others",), "12/W", (("4*W",),))
    path = tmp_path / "calls.toml"
    path.write_text(write(plan))
    assert plan == read(path)
    follower = Follower(plan.role_of(7, 12).calls, 12)
    assert all(follower.take(planned_call(k, 7, 12)) for k in course(1, 12, 48))
    assert follower.can_end()


def test_ranks_that_call_otherwise_have_a_role_that_counts_from_the_nearer_end():
    """So that the plan holds for more ranks."""
    calls = {rank: course(2, 8) for rank in range(8)}
    calls[0] = [key("broadcast_", group=tuple(range(8))), *calls[0]]
    calls[7] = calls[7][:-1]
    plan, _ = make_plan(calls, Head(world=8))
    assert [role.ranks for role in plan.role] == [("0",), ("W-1",), ("others",)]
    assert plan.role_of(15, 16) is plan.role[1]
    assert plan.role_of(7, 16) is plan.role[2]


@pytest.mark.parametrize(
    ("pair", "found"),
    [((6, 6), 6), ((8, 16), "4*W"), ((2, 4), "W"), ((6, 3), "12/W"), ((5, 2), "12/W-1"), ((7, 4), "14/W"),
     ((3, 5), "W+1"), ((7, 6000), "any"), ((0, 0), 0)],
)  # fmt: skip
def test_a_formula_gives_back_the_numbers_it_was_made_of(pair, found):
    """At two and at four ranks."""
    assert found == formula(pair, (2, 4))
    assert found == "any" or [evaluate(found, world) for world in (2, 4)] == list(pair)


def test_numbers_depend_on_options_where_another_value_shows_it(tmp_path):
    """Rounds on one option, a size on option and world; what is built otherwise stays a number, and is named."""

    def calls(world, layers, batch, more=0):
        group = tuple(range(world))
        rounds = layers * [key(shape=(world * batch * 3, 7), group=group)]
        return {rank: [*rounds, *more * [key("barrier", (), 12, group)]] for rank in group}

    varied = [
        Varied("W", 2, 4, calls(4, 3, 5)), Varied("layers", 3, 6, calls(2, 6, 5)),
        Varied("batch", 5, 10, calls(2, 3, 10)),
        Varied("width", 1, 2, calls(2, 3, 5, more=1)),
    ]  # fmt: skip
    head = Head(command=("train.py", "--layers", "3"), world=2, options={"layers": 3, "batch": 5, "width": 1})
    plan, unfit = make_plan(calls(2, 3, 5), head, varied)
    assert unfit == ["width"]
    (loop,) = plan.role[0].calls
    assert (loop.repeat, loop.calls[0].sizes) == ("layers", (("3*W*batch", 7),))
    path = tmp_path / "calls.toml"
    path.write_text(write(plan))
    assert read(path) == plan
    follower = Follower(with_options(plan, {"layers": 2, "batch": 4}).role[0].calls, 8)
    assert all(follower.take(planned_call(k, 0, 8)) for k in calls(8, 2, 4)[0])
    assert follower.can_end()
    assert not Follower(with_options(plan, {"layers": 2, "batch": 5}).role[0].calls, 8).take(
        planned_call(calls(8, 2, 4)[0][0], 0, 8)
    )
    assert Follower(with_options(plan, {"layers": 2}).role[0].calls, 8).take(planned_call(calls(8, 2, 4)[0][0], 0, 8))
    assert number_of([6, 9, 12], [("W", 2, 4), ("n", 3, 6)]) == "any"
    assert substitute("3*W*batch+1", {"batch": 5}) == "15*W+1"


@pytest.mark.parametrize("word", ["--batch-size 8", "--batch-size=8", "train.batch_size=8"])
def test_an_option_is_read_and_changed_as_it_is_written(word):
    """By the name that formulas have for it."""
    words = ["train.py", "--lr", "0.1", *word.split(), "data=x"]
    assert whole_values(words) == {"batch_size": 8}
    assert with_value(words, "batch_size", 16) == [w.replace("8", "16") for w in words]


def test_repetitions_are_folded_from_the_inside_out():
    """Two epochs of three steps each."""
    step, end = PlannedCall("allreduce_"), PlannedCall("barrier")
    assert fold([step, step, step, end] * 2) == (Loop(2, (Loop(3, (step,)), end)),)
    assert fold([step, end]) == (step, end)


def test_a_rank_that_leaves_early_or_goes_on_is_seen_at_the_call():
    """The expected call and its round are known."""
    step, end = PlannedCall("allreduce_", line="t.py:4"), PlannedCall("barrier")
    follower = Follower((Loop(3, (step,)), end), 2)
    assert follower.take(step)
    assert follower.take(step)
    assert not follower.take(end)
    assert (follower.rounds(), [c.line for c in follower.next_calls()]) == ("round 3 of 3", ["t.py:4"])
    assert follower.take(step)
    assert not follower.take(step)
    assert not follower.can_end()
    free = Follower((Loop(3, (step,)), end), 2, free_loops=True)
    assert all(free.take(call) for call in [*[step] * 50, end])
    assert free.can_end()


def test_a_change_is_said_in_words():
    """What is called in addition, no more, or instead, by which ranks."""
    before, _ = make_plan({r: course(3) for r in (0, 1)}, Head(world=2))
    more = {r: [*course(3), key(shape=(1,), line=30)] for r in (0, 1)}
    assert changes(before, make_plan(more, Head(world=2))[0]) == [
        "All ranks also begin allreduce of float32[1] (train.py:30)."
    ]
    apart = {0: course(3), 1: course(3)[1:]}
    assert changes(before, make_plan(apart, Head(world=2))[0]) == [
        "Rank W-1 no longer begins broadcast of float32[4] with root 0 (train.py:7)."
    ]
    assert changes(before, before) == []


def test_what_a_value_decides_is_outside(tmp_path):
    """The branch, the loop that counts by it, and the function that only the branch calls."""
    program = tmp_path / "train.py"
    program.write_text(
        "def save():\n    barrier()\n\nbad = loss.item() > 9\nif bad:\n    save()\nfor _ in range(3):\n    reduce()\n"
    )
    assert sorted(branches(str(program), 4)) == [(1, 2), (5, 6)]
    left = Outside(["train.py:5-6", "no range"])
    assert left.holds("/a/train.py", 6)
    assert not left.holds("/a/train.py", 7)
    assert not left.holds("/a/other.py", 6)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x = [", "no TOML"),
        ("version = 1\nworld = 2\n", "it has no role"),
        ("version = 9\nworld = 2\n[[role]]\nranks = ['0']\ncalls = []\n", "version 9"),
        ("version = 1\nworld = 2\n[[role]]\nranks = ['first']\ncalls = []\n", "'first' is not 0, W-1 or others"),
        ("version = 1\nworld = 2\n[[role]]\nranks = ['0']\ncalls = [{op = 'x', sizes = [['2**W']]}]\n", "'2**W' is no"),
        ("version = 1\nworld = 2\n[[role]]\nranks = ['0']\ncalls = [{size = 1}]\n", "no plan"),
        ("version = 1\nworld = 2\n[[role]]\nranks = ['0']\ncalls = [{op = 'x', sizes = [['layers']]}]\n", "no layers"),
        ("version = 1\nworld = 2\n[[role]]\nranks = ['0']\ncalls = " + "[{repeat = 1, calls = " * 300, "no "),
    ],
)
def test_a_file_that_is_no_plan_is_one_line(text, why, tmp_path):
    """With what is wrong."""
    path = tmp_path / "calls.toml"
    path.write_text(text)
    with pytest.raises(UsageError, match=r"calls\.toml") as error:
        read(path)
    assert why in str(error.value)
    assert "\n" not in str(error.value)


PROGRAM = """
import os, torch, torch.distributed as dist
dist.init_process_group("gloo")
for step in range(4):
    if os.environ.get("BAD") == "1" and dist.get_rank() == 1 and step == 2:
        break
    dist.all_reduce(torch.ones(3))
total = torch.ones(())
if os.environ.get("BAD") != "2":
    dist.all_reduce(total)
if total > 9:
    dist.barrier()
dist.all_gather_object([None] * dist.get_world_size(), os.getpid())
"""


def dtdebug(folder, *words, **env):
    done = subprocess.run(
        [sys.executable, "-m", "dtdebug", *words],
        cwd=folder, env={**os.environ, **env}, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


@pytest.mark.ranks
def test_the_rank_that_leaves_the_contract_names_itself_at_the_call(tmp_path):
    """A job that keeps it says so, also with more ranks; a change of all ranks is a note, and words in CI."""
    (tmp_path / "train.py").write_text(PROGRAM)
    status, said = dtdebug(tmp_path, "rehearse", "--world", "2", "--save", "calls.toml", "--", "train.py")
    assert (status, "wrote calls.toml: 1 role" in said) == (0, True)
    assert 'outside = ["train.py:11-12"]' in (tmp_path / "calls.toml").read_text()

    def run(ranks, **env):
        return dtdebug(
            tmp_path, "run", "--hang-after", "8", "--stop-on-hang", "--contract", "calls.toml", "--",
            sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks), "train.py",
            **env,
        )  # fmt: skip

    status, said = run(3)
    assert (status, "contract: 3 ranks kept it, 7 collectives each at least" in said) == (0, True), said
    status, said = run(2, BAD="1")
    assert "rank 1: begins allreduce of float32[] at train.py:10; the contract has allreduce of float32[3]" in said
    assert "round 3 of 4" in said
    assert "dtdebug: Rank 1 begins allreduce of float32[]" in said
    status, said = run(2, BAD="2")
    assert (status, "contract: all ranks leave it alike" in said) == (0, True), said
    status, said = dtdebug(tmp_path, "rehearse", "--world", "2", "--against", "calls.toml", "--", "train.py", BAD="2")
    assert (status, "All ranks no longer begin allreduce of float32[] (train.py:10)." in said) == (1, True), said


FOR_GPUS = """
import os, torch, torch.distributed as dist
dist.init_process_group("nccl")
device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
torch.cuda.set_device(device)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4).to(device), device_ids=[device.index])
for step in range(3):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = model(torch.ones(2, 4, device=device)).sum()
    loss.backward()
"""


@pytest.mark.ranks
@pytest.mark.skipif(Path("/dev/nvidia0").exists(), reason="it runs on the GPU there")
def test_a_program_for_gpus_is_rehearsed_where_there_is_none(tmp_path):
    """What it puts on a GPU stays on the processor, and its calls are the same."""
    (tmp_path / "train.py").write_text(FOR_GPUS)
    status, said = dtdebug(tmp_path, "rehearse", "--world", "2", "--save", "calls.toml", "--", "train.py")
    assert status == 0, said
    (role,) = read(tmp_path / "calls.toml").role
    calls = [c for item in role.calls for c in (item.calls if isinstance(item, Loop) else (item,))]
    assert [c.sizes for c in calls if c.op == "allreduce_"] == [((20,),)] * 2
    assert any(c.op == "broadcast_" and c.sizes == ((20,),) for c in calls)


def test_the_contract_of_a_public_recipe_stays_small():
    """More steps than it was made with fit; a broadcast in place of a step does not."""
    path = Path(__file__).parents[2] / "contracts" / "recipes" / "nanogpt.toml"
    plan = read(path)
    assert len(path.read_text().splitlines()) <= 25
    follower = Follower(plan.role_of(1, 2).calls, 2, free_loops=True)
    flat = [item for item in plan.role[0].calls if isinstance(item, PlannedCall)]
    (loop,) = [item for item in plan.role[0].calls if isinstance(item, Loop)]
    assert all(follower.take(call) for call in [*flat, *loop.calls * 6])
    assert not follower.take(flat[0])
