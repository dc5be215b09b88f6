"""Stacks of many ranks: classes, the tree, one screen, and what moved between two looks."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtdebug.live.probe import stack_tree
from dtdebug_taxonomy.model.ranks import Frame, Group, RankState, ranges
from dtdebug_taxonomy.stacks.frames import is_library, own_frame, short

TORCH = "/opt/venv/lib/python3.11/site-packages/torch/"
MAIN = (Frame("/home/u/train.py", 120, "<module>", "main()"), Frame("/home/u/train.py", 88, "main", "train()"))
STEP = (
    *MAIN,
    Frame("/home/u/train.py", 42, "train", "loss.backward()"),
    Frame(TORCH + "_tensor.py", 581, "backward"),
    Frame(TORCH + "autograd/graph.py", 825, "_engine_run_backward"),
)
LOAD = (
    *MAIN,
    Frame("/home/u/train.py", 38, "train", "for batch in loader:"),
    Frame(TORCH + "utils/data/dataloader.py", 708, "__next__"),
    Frame("/home/u/data.py", 17, "__getitem__", "time.sleep(3600)"),
)

frames = st.builds(Frame, st.sampled_from(["/home/u/a.py", TORCH + "b.py"]), st.integers(1, 3), st.sampled_from("fg"))
jobs = st.lists(st.lists(frames, max_size=6).map(tuple), max_size=24).map(
    lambda rows: [RankState(rank=i, stack=row) for i, row in enumerate(rows)]
)


def parsed(text):
    """The ranks that a text of ranges stands for."""
    parts = [part.split("-") for part in text.split(",") if part]
    return {rank for part in parts for rank in range(int(part[0]), int(part[-1]) + 1)}


@given(st.sets(st.integers(0, 40)))
def test_ranges_read_back_as_the_same_ranks(ranks):
    """Nothing is lost, and no two ranges touch."""
    text = ranges(ranks)
    begins = [int(part.split("-")[0]) for part in text.split(",") if part]
    ends = [int(part.split("-")[-1]) for part in text.split(",") if part]

    assert ranks == parsed(text)
    assert all(begin > end + 1 for end, begin in zip(ends, begins[1:], strict=False))


def test_ranges_beyond_a_number_are_counted():
    """Every second of 512 ranks does not fill the line."""
    assert "0,2,... 254 more" == ranges(range(0, 512, 2), 2)


@given(jobs)
def test_classes_partition_the_ranks(states):
    """Each rank with a stack is in exactly one class, with the ranks that have the same stack."""
    rows = stack_tree.classes(states)
    members = [rank for row in rows for rank in row.ranks]

    assert sorted(members) == [s.rank for s in states if s.stack]
    assert len(rows) == len({row.stack for row in rows})
    for row in rows:
        assert {states[rank].stack for rank in row.ranks} == {row.stack}


def walked(node, prefix=()):
    """(stack, ranks that end there) for each end of a stack in the tree."""
    path = prefix + node.frames
    below = {rank for branch in node.branches for rank in branch.ranks}
    ending = set(node.ranks) - below
    if ending:
        yield path, ending
    for branch in node.branches:
        assert set(branch.ranks) <= set(node.ranks)
        yield from walked(branch, path)


@given(jobs)
def test_the_tree_holds_every_stack(states):
    """Following the branches gives each class back, whatever the stacks."""
    rows = stack_tree.classes(states)
    found = dict(walked(stack_tree.stack_tree(rows)))

    assert {row.stack: set(row.ranks) for row in rows} == found


@given(jobs, st.integers(5, 60))
def test_a_text_never_exceeds_its_lines(states, lines):
    """However many places the ranks are in."""
    text = stack_tree.to_text(states, lines=lines).splitlines()

    assert len(text) <= lines
    assert max(map(len, text)) <= stack_tree.WIDTH


def test_one_rank_among_512_stands_out():
    """The common outer frames are said once; the odd rank has its own branch with the user's line marked."""
    states = [RankState(rank=r, stack=LOAD if r == 3 else STEP) for r in range(512)]
    text = stack_tree.to_text(states, culprits=(3,))

    assert "512 ranks, 2 different stacks" in text
    assert "[0-2,4-511] 511 ranks" in text
    assert "[3] <- culprit" in text
    assert "> data.py:17 __getitem__  time.sleep(3600)" in text
    assert 1 == text.count("train.py:88 main")
    assert "  torch/autograd/graph.py:825 _engine_run_backward" in text


def test_ranks_all_elsewhere_fit_on_one_screen():
    """512 different stacks: crowds and outliers are shown, the rest is counted."""
    states = [
        RankState(rank=r, stack=(*MAIN, *(Frame("x.py", (r * 7 + i) % (3 + i), f"f{i}") for i in range(20))))
        for r in range(512)
    ]
    text = stack_tree.to_text(states).splitlines()

    assert len(text) <= stack_tree.LINES
    assert "more branch" in "\n".join(text)


def test_a_recursion_of_different_depth_on_each_rank_is_bounded():
    """Thousands of branchings below each other overflow nothing."""
    states = [RankState(rank=r, stack=(Frame("a.py", 1, "f"),) * (r + 1)) for r in range(2_000)]

    assert len(stack_tree.to_text(states).splitlines()) <= stack_tree.LINES


def test_ranks_without_stack_are_named():
    """A rank that could not be read is not silently left out."""
    states = [RankState(rank=0, stack=STEP), RankState(rank=1), RankState(rank=2)]

    assert "no stack of rank 1-2" in stack_tree.to_text(states)
    assert "0 ranks" in stack_tree.to_text([])


def test_control_characters_in_frames_are_not_shown():
    """A function's or file's name from another process can't steer the terminal."""
    states = [RankState(rank=0, stack=(Frame("/home/u/\x1b[2Jevil.py", 1, "f\x07", "code\x1b[31m"),))]

    assert "\x1b" not in stack_tree.to_text(states)
    assert "\x07" not in stack_tree.to_text(states)


@pytest.mark.parametrize(
    "file",
    [
        TORCH + "nn/parallel/distributed.py",
        "/usr/lib/python3.11/threading.py",
        "/home/u/pytorch/torch/distributed/distributed_c10d.py",
        "C:\\Python311\\Lib\\threading.py",
        "C:\\venv\\Lib\\site-packages\\numpy\\core.py",
        "/usr/lib/python3/dist-packages/yaml/__init__.py",
        "<frozen importlib._bootstrap>",
    ],
)
def test_installed_code_is_a_library(file):
    """Site packages, the standard library, a source tree of PyTorch."""
    assert is_library(file)


@pytest.mark.parametrize(
    "file",
    [
        "/home/u/train.py", "train.py", "/tmp/ipykernel_17/1234.py", "<ipython-input-3-abc>", "<stdin>",
        "/home/u/torch/train.py", "/home/u/library/python/models.py", "C:\\Users\\u\\train.py",
    ],
)  # fmt: skip
def test_scripts_and_cells_are_the_users_own(file):
    """A folder that is only called like a library is none."""
    assert not is_library(file)


def test_the_users_innermost_frame_is_found():
    """Below it there may be any number of library frames."""
    assert "loss.backward()" == own_frame(STEP).code
    assert own_frame(STEP[3:]) is None
    assert "torch/_tensor.py" == short(STEP[3].file)


def seen(stack=STEP, count=5, rank=0, **more):
    """A rank that has begun so many operations."""
    return RankState(rank=rank, pid=7, stack=stack, groups=(Group(name="0", enqueued=count, completed=count),), **more)


POLL = msgspec.structs.replace(STEP[-1], line=900)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (seen(), seen(), "stuck"),
        (seen(), seen(count=6), "slow"),
        (seen(step=1), seen(step=2), "slow"),
        (seen(), seen(stack=LOAD), "busy"),
        (seen(), seen(stack=(*STEP[:-1], POLL)), "stuck"),
        (seen(), seen(alive=False), "gone"),
        (seen(), seen(stack=()), "unknown"),
        (seen(stack=STEP[3:]), seen(stack=(*STEP[3:-1], POLL)), "busy"),
    ],
)
def test_two_looks_tell_stuck_from_slow_and_busy(before, after, expected):
    """Counters first, then the user's own frames: a library that polls has not moved."""
    assert {0: expected} == stack_tree.compare([before], [after])


def test_a_rank_seen_once_is_unknown():
    """Neither stuck nor moving can be said of it."""
    found = stack_tree.compare([seen(rank=0), seen(rank=1)], [seen(rank=0)])

    assert {0: "stuck", 1: "unknown"} == found
    assert "stuck: 0; unknown: 1" == stack_tree.progress_text(found)
