"""`dtdebug run --watch` names what does not hold in a training that ends with success, and leaves healthy ones "
"alone."""

import json
import math
import os
import subprocess
import sys
import time
import types
from pathlib import Path

import msgspec
import pytest
from places import ROOT, TESTS

from dtdebug.experiments.invariants.announce import Announcer, violation_line
from dtdebug.experiments.invariants.inside import fingerprints
from dtdebug.experiments.invariants.inside.clipping import Clipping
from dtdebug.experiments.invariants.inside.lost_updates import LostWork
from dtdebug.experiments.invariants.inside.models import Models
from dtdebug.experiments.invariants.inside.optimizers import divisors
from dtdebug.experiments.invariants.inside.record_writer import WatchNotes, guard_method
from dtdebug.experiments.invariants.inside.steps import Steps
from dtdebug.experiments.invariants.judge import judge
from dtdebug.experiments.invariants.judge.common import differ, odd
from dtdebug.experiments.invariants.judge.model_state import same_draws
from dtdebug.experiments.invariants.judge.no_exchange import own_beginnings
from dtdebug.experiments.invariants.judge.stragglers import late, paces
from dtdebug.experiments.invariants.read_records import Rank, read_ranks
from dtdebug.experiments.invariants.record_types import (
    AnyRecord,
    Backward,
    Batch,
    DroppedWork,
    Epoch,
    Fetch,
    FirstStep,
    Forward,
    GatheredOutput,
    HookedValues,
    Join,
    Mesh,
    Model,
    Order,
    ParameterSet,
    Phases,
    Process,
    ReplicatedValues,
    Shape,
    Site,
    Step,
)
from dtdebug.experiments.invariants.result import WatchResult, watch_result
from dtdebug.live.job.conclude import move_to_causes
from dtdebug.notebook import instrument_cell
from dtdebug_taxonomy.checks import load as load_checks
from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.model.snapshot import Snapshot
from dtdebug_taxonomy.model.training import Violation
from dtdebug_taxonomy.presentation.answer import build_answer
from dtdebug_taxonomy.presentation.answer_text import lay_out

PROGRAMS = TESTS / "watched"
LIMIT = 240
"""Seconds that nothing here may take."""


def job(tmp_path, name, *arguments):
    """The report of a job of two ranks that was watched."""
    pytest.importorskip("torch")
    report = tmp_path / "report.json"
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    ended = subprocess.run(
        [
            *(sys.executable, "-m", "dtdebug", "run", "--watch", "--folder", str(tmp_path / "run"), "--format", "json"),
            *("--output", str(report), "--", *torchrun, str(PROGRAMS / name), *arguments),
        ],
        env=os.environ | {"OMP_NUM_THREADS": "1", "DTDEBUG_STATE": str(tmp_path / "state")},
        capture_output=True,
        timeout=LIMIT,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr.decode()[-3000:]
    return json.loads(report.read_bytes()), ended.stderr.decode()


def line(name, mark):
    """The line of a program that has this mark."""
    return next(n for n, text in enumerate((PROGRAMS / name).read_text().splitlines(), 1) if mark in text)


# --- real jobs


@pytest.mark.ranks
def test_a_healthy_training_is_left_alone(tmp_path):
    """Accumulation, mixed precision, dropout, frozen weights, an evaluation on one rank, workers, early stopping."""
    report, printed = job(tmp_path, "healthy.py")
    assert report["watch"] == []
    assert report["verdict"]["kind"] == "none"
    assert report["verdict"]["summary"] == "The job finished."
    assert "watch: ranks 0-1, " in report["notes"][0]
    assert "off" not in report["notes"][0]
    assert "dtdebug: watch" not in printed
    assert {p["rank"] for p in report["pace"]} <= {0, 1}


@pytest.mark.ranks
@pytest.mark.parametrize(
    ("fault", "invariant", "ranks", "step", "mark", "symptom"),
    [
        ("skipped", "steps-differ", [1], 5, "# STEP", "D.2.4"),
        ("inner", "not-reduced", [0, 1], 1, "", "D.2.5"),
        ("same", "inputs-alike", [0, 1], 1, "# LOADER", "D.2.4"),
        ("async", "work-dropped", [0, 1], 9, "# DROPPED", "D.2.4"),
    ],
)
def test_a_silent_fault_is_named_with_step_ranks_and_line(tmp_path, fault, invariant, ranks, step, mark, symptom):
    """The job ends with success, and the report says what did not hold; the diagnosis is of that symptom."""
    report, _ = job(tmp_path, "silent.py", fault)
    assert [row["invariant"] for row in report["watch"]] == [invariant]
    row = report["watch"][0]
    assert (row["ranks"], row["step"], row["symptom"]) == (ranks, step, symptom)
    assert Path(row["file"]).name == "silent.py"
    if mark:
        assert row["line"] == line("silent.py", mark)
    assert report["diagnosis"]["symptoms"][0]["code"] == symptom
    assert report["diagnosis"]["advice"]


@pytest.mark.ranks
def test_a_violated_invariant_is_said_while_the_job_runs(tmp_path):
    """One line, once, before the program ends; the report has it too."""
    report, printed = job(tmp_path, "silent.py", "slowly")
    assert [row["invariant"] for row in report["watch"]] == ["hyperparameters-differ"]
    said = f"dtdebug: watch: hyperparameters-differ: ranks 0-1, step 1, silent.py:{line('silent.py', '# STEP')}: lr of"
    assert printed.count("dtdebug: watch: ") == 1
    assert 0 <= printed.find(said) < printed.find("TRAINED")


# --- comparing, on notes as ranks write them


def part(**more):
    values = {
        "kind": "ddp",
        "m": 0,
        "n": 100,
        "shapes": "s",
        "group": [0, 1],
        "g": "g",
        "gs": [0.5],
        "p0": "w",
        "p0s": [1.0],
    }
    return ParameterSet(**{**values, "p1": "v", "p1s": [2.0], "finite": True, "own": 0, "of": 2, "largest": 0,
                  "since": {"forward": 1, "synced": 1}, **more})  # fmt: skip


def step(s, sets, rate=0.1, **more):
    values = {"o": 0, "f": {"0": s}, "grads": 2, "trainable": 2, "backwards": 1, "cleared": True, **more}
    return Step(s=s, hyper=[{"lr": [rate]}], sets=sets, **values)


def rank(number, rows):
    found = Rank(number, "host", 2)
    found.add([FirstStep(True, number, 2), Model(0, "ddp", [0, 1]), *rows])
    return found


def names(*ranks):
    return [v.invariant for v in judge(ranks)]


def test_equal_replicas_violate_nothing():
    """The same settings, gradients and weights."""
    assert not names(*(rank(r, [step(s, [part()]) for s in (1, 2, 3)]) for r in (0, 1)))


def test_a_rate_that_differs_is_said_where_it_begins():
    """From step 2 on."""
    rows = [rank(r, [step(1, [part()]), step(2, [part()], 0.1 * (1 + r)), step(3, [part(p0=str(r))])]) for r in (0, 1)]
    found = judge(rows)
    assert [(v.invariant, v.step, v.ranks) for v in found] == [("hyperparameters-differ", 2, (0, 1))]
    assert "lr of the optimizer" in found[0].means


@pytest.mark.parametrize("passes", [0, 7])
def test_steps_without_a_pass_through_the_wrapper_are_counted_by_their_numbers(passes):
    """Each rank notes another choice of them as its cost demands: what was not looked at was not left out."""
    noted = {0: [*range(1, 41), 48, 64, 128], 1: [*range(1, 33), 40, 48, 64, 128]}
    inner = {"forward": 0, "synced": 0}
    rows = [
        rank(r, [step(s, [part(since=inner, g=f"{s}.{r}", gs=[s + r])], f={"0": passes}) for s in noted[r]])
        for r in (0, 1)
    ]
    assert names(*rows) == ["not-reduced"]


def test_a_step_that_one_replica_leaves_out_between_two_passes_is_named():
    """Two steps a pass, and the second of the third pass on one rank only."""
    plan = {
        0: [(1, 1), (2, 1), (3, 2), (4, 2), (5, 3), (6, 3), (7, 4)],
        1: [(1, 1), (2, 1), (3, 2), (4, 2), (5, 3), (6, 4)],
    }
    found = judge([rank(r, [step(s, [part()], f={"0": n}) for s, n in plan[r]]) for r in (0, 1)])
    assert [(v.invariant, v.ranks) for v in found] == [("steps-differ", (1,))]


def test_what_is_rounded_otherwise_is_no_difference():
    """Other bits, the same values but for the last digits; a NaN is another value."""
    assert not differ(("a", [1.0, 2.0]), ("b", [1.0000001, 2.0]))
    assert differ(("a", [1.0, 2.0]), ("b", [1.1, 2.0]))
    assert differ(("a", [1.0, "nan"]), ("b", [1.0, 2.0]))
    assert differ(("a", [1.0]), ("b", [1.0]))  # elsewhere than where samples were taken


def test_replicas_of_a_hook_that_keeps_gradients_apart_are_not_compared():
    """Local SGD lets them drift on purpose."""
    rows = [rank(r, [step(s, [part(hook="post_localSGD_hook", g=str(r), p1=str(r))]) for s in (1, 2)]) for r in (0, 1)]
    assert not names(*rows)


def test_weights_that_one_rank_changed_are_its_own():
    """Even of two ranks one is known: its weights are not those that its last step left."""
    rows = [
        rank(r, [step(1, [part()]), step(2, [part(p0="v" if r else "x", p0s=[2.0 + (not r)], p1s=[3.0])])])
        for r in (0, 1)
    ]
    found = judge(rows)
    assert [(v.invariant, v.ranks, v.step) for v in found] == [("weights-changed-on-some-ranks", (0,), 2)]


@pytest.mark.parametrize(("times", "said"), [(1, []), (2, ["summed"]), (0.5, ["averaged-twice"]), (0.7, [])])
def test_what_a_communication_hook_makes_of_gradients_is_compared_with_their_mean(times, said):
    """A sum, the mean, the mean divided again; what keeps no values, as a hook of low rank, proves nothing."""
    given = {0: [1.0, -2.0, 8.0, 0.5], 1: [3.0, -1.0, 2.0, 1.5]}
    after = [times * v for v in (2.0, -1.5, 5.02, 1.0)]
    rows = {r: [HookedValues(0, n, n, given[r], after) for n in (1, 2, 3)] for r in (0, 1)}
    assert names(*(rank(r, [*rows[r], step(1, [part()])]) for r in (0, 1))) == said


def test_weights_that_were_loaded_after_wrapping_are_of_the_rank_that_loaded_them():
    """Wrapping has made them equal; at the first step one rank has others."""

    def started(r, weights):
        found = Rank(r, "host", 2)
        rows = [step(s, [part(p0=weights[0], p0s=weights[1:])]) for s in (1, 2, 3)]
        found.add([FirstStep(True, r, 2), Model(0, "ddp", [0, 1], p="w", ps=[1.0]), *rows])
        return found

    seen = judge([started(0, ("x", 9.0)), started(1, ("w", 1.0))])
    assert [(v.invariant, v.ranks, v.step) for v in seen] == [("weights-changed-on-some-ranks", (0,), 1)]


def test_the_rank_that_is_unlike_most_is_named():
    """All of them where there is no majority."""
    assert odd({0: "a", 1: "a", 2: "b"}) == (2,)
    assert odd({0: "a", 1: "b"}) == (0, 1)
    assert odd({0: "a", 1: "a"}) == ()


def test_a_late_rank_is_known_by_comparing_phases():
    """The others' backward rises while they wait; an evaluation that takes long once is not it."""

    def phases(number, share, windows=6):
        rows = [
            Phases(
                0.0,
                2.0,
                20,
                {"loader": int(80 * share(w)), "backward": 80 - int(80 * share(w))},
                [("loader", "t.py", 7, 9)],
            )
            for w in range(windows)
        ]
        return rank(number, rows)

    found = late([phases(0, lambda w: 0.02), phases(1, lambda w: 0.6), phases(2, lambda w: 0.02)])
    assert [(row.ranks, row.phase, row.file, row.line) for row in found] == [((1,), "loader", "t.py", 7)]
    assert found[0].symptom == "D.2.3"
    assert not late([phases(0, lambda w: 0.02), phases(1, lambda w: 0.9 * (w > 3)), phases(2, lambda w: 0.02)])
    everywhere = late([phases(r, lambda w: 0.8) for r in range(3)])
    assert [(row.ranks, row.others) for row in everywhere] == [((0, 1, 2), None)]
    assert paces([phases(0, lambda w: 0.5)])[0].step_seconds == pytest.approx(0.1)


def test_what_is_left_out_of_a_reduction_by_hand_is_named():
    """Not where ranks hold parts of one model: then a program also reduces what is no gradient, or exchanges it."""

    def pair(**more):
        calls = more.pop("calls", ["all_reduce"])
        rows = []
        for r in (0, 1):
            rest = {"kind": "rest", "m": -1, "group": [], **more}
            rows.append(rank(r, [
                step(1, [part(**rest)], calls=calls),
                step(2, [part(**rest, p0=f"w{r}", p0s=[1.0 + r])], calls=calls),
            ]))  # fmt: skip
        return names(*rows)

    assert pair() == ["partly-reduced"]
    assert not pair(other=512)
    assert not pair(calls=["all_reduce", "isend"])


def test_ranks_of_a_sharded_model_step_with_one_setting():
    """Their weights can't be compared; their settings can."""

    def sharded(r, rate):
        found = Rank(r, "host", 2)
        found.add([FirstStep(True, r, 2), Model(0, "fully_shard", [0, 1]), step(1, [], rate, models=[0])])
        return found

    assert names(sharded(0, 0.1), sharded(1, 0.2)) == ["hyperparameters-differ"]
    assert not names(sharded(0, 0.1), sharded(1, 0.1))


@pytest.mark.parametrize(
    ("synced", "grads", "expected"),
    [
        ([True, True, False, False], [2, 2, 0, 0], ["not-reduced"]),  # switched off after step 2, never on again
        ([False, False, False, False], [0, 0, 0, 0], ["not-reduced"]),
        ([True, True, True, True], [2, 2, 0, 0], ["step-without-gradients"]),  # reduced: something else is wrong
        ([False, False, True, True], [2, 2, 2, 2], []),
    ],
)
def test_gradient_sync_of_a_sharded_model_that_stays_off_is_named(synced, grads, expected):
    """From the step on from which no pass is reduced; the optimizer is not said to hold other parameters then."""

    def sharded(r):
        found = Rank(r, "host", 2)
        found.add([FirstStep(True, r, 2), Model(0, "fully_shard", [0, 1])])
        for n, (on, count) in enumerate(zip(synced, grads, strict=True), 1):
            passes = Forward(
                s=n, m=0, n=n, h=f"{r}{n}", kinds=[], train=True, varies=True, synced=on, cast=[], rng=str(r)
            )
            found.add([passes, step(n, [], grads=count, models=[0])])
        return found

    found = judge([sharded(0), sharded(1)])
    assert [row.invariant for row in found] == expected
    if expected == ["not-reduced"]:
        assert found[0].step == 1 + synced.index(False)
    if expected == ["step-without-gradients"]:
        assert found[0].cause.startswith("The optimizer holds other parameters")
        assert found[0].sure
        assert violation_line(found[0]).count("The optimizer holds other parameters") == 1


@pytest.mark.parametrize(
    ("wrapped", "seeds", "named", "noted"),
    [
        (["a", "b"], ["0", "1"], [], False),
        (["a", "b"], ["0", "0"], ["randomness-alike"], False),  # one seed after each rank had its own
        (["a", "a"], ["0", "0"], [], True),  # one seed from the beginning: many programs mean that
    ],
)
def test_ranks_that_draw_alike_are_named_where_they_had_been_seeded_apart(wrapped, seeds, named, noted):
    """Else it is a note."""

    def drawing(r):
        found = Rank(r, "host", 2)
        found.add([FirstStep(True, r, 2), Model(0, "ddp", [0, 1], rng=wrapped[r])])
        for n in (1, 2, 3):
            seen = {"kinds": [], "train": True, "varies": True, "synced": True, "cast": []}
            given = Forward(s=n, m=0, n=n, h=f"{r}{n}", rng=f"{seeds[r]}{n}", **seen)
            found.add([given, Backward(n, n, 0.5, False, f"{seeds[r]}{n}x", True, 0, n)])
        return found

    found = [drawing(0), drawing(1)]
    assert [row.invariant for row in judge(found)] == named
    assert bool(same_draws(found)) is noted


@pytest.mark.parametrize(
    ("other", "losses", "named"),
    [
        ("Dropout(p=0.1)", (0.5, 0.25), []),
        ("Dropout(p=0.5)", (0.5, 0.25), ["settings-differ"]),
        ("Dropout(p=0.1)", (0.5, 0.0), ["loss-always-zero"]),
        ("Dropout(p=0.1)", (0.0, 0.0), []),
    ],
)
def test_replicas_are_set_alike_and_each_has_a_loss(other, losses, named):
    """A loss of 0 on all ranks, or in some passes, may be meant."""

    def replica(r, loss, passes=9):
        found = Rank(r, "host", 2)
        layers = ["Dropout(p=0.1)" if r == 0 else other, "Linear(in_features=4)"]
        found.add([FirstStep(True, r, 2), Model(0, "ddp", [0, 1]), Shape(0, "cpu", ["float32"], layers=sorted(layers))])
        found.add([Backward(n, n, loss if n < 9 else losses[0], False, "", True, 0, n) for n in range(1, passes)])
        return found

    assert names(*(replica(r, loss) for r, loss in enumerate(losses))) == named
    assert "loss-always-zero" not in names(*(replica(r, loss, 10) for r, loss in enumerate(losses)))


def test_what_is_declared_to_be_replicated_is_compared():
    """Other values in most places, more than once; not what is rounded otherwise."""

    def given(change):
        rows = [
            rank(r, [ReplicatedValues([0, 1], n, [4], [1.0, 2.0 + r * change, 3.0 + r * change, 4.0 + r * change], n)
                     for n in (1, 2, 3)])
            for r in (0, 1)
        ]  # fmt: skip
        return names(*rows)

    assert given(1.0) == ["replicated-differs"]
    assert not given(1e-4)


def test_stages_made_from_one_seed_are_no_copies():
    """They begin equal, go apart, and send to each other what is small beside their weights."""

    def ends(calls):
        return names(*(
            rank(r, [step(s, [part(kind="own", m=-1, n=9999, group=[], p0=f"{s * r}", p0s=[1.0 + s * r])], calls=calls)
                     for s in (0, 1, 2, 3)])
            for r in (0, 1)
        ))  # fmt: skip

    assert ends([]) == ["never-reduced"]
    assert not ends(["recv", "send"])


def test_what_is_reduced_and_not_stepped_with_is_named():
    """Before each step, as of a copy; weights that are averaged now and then are equal after that."""

    def ends(equal):
        return names(*(
            rank(r, [step(s, [part(kind="own", m=-1, group=[], largest=90, shaped=s > 1 and (not equal or s % 2 == 0),
                                   p0=f"{s}" if s == 1 or (equal and s % 2 == 0) else f"{s}{r}",
                                   p0s=[s + r * (s > 1)])]) for s in range(1, 9)])
            for r in (0, 1)
        ))  # fmt: skip

    assert ends(equal=False) == ["never-reduced"]
    assert not ends(equal=True)


@pytest.mark.parametrize(
    ("text", "backwards", "said"),
    [
        ("loss = f(x)\nloss = loss / dist.get_world_size()\nloss.backward()", 1, 2),
        ("n = int(os.environ['WORLD_SIZE'])\nloss = f(x)\nloss /= n\nscaler.scale(loss).backward()", 1, 3),
        ("loss = f(x)\nmean = total / world_size\n(loss / 2).backward()", 1, 0),
        ("loss = f(x)\nloss = loss / world_size\nloss.backward()", 2, 0),
        ("def scaled(x):\n    return f(x) / world_size\nloss = scaled(x)\nloss.backward()", 1, 2),
    ],
)
def test_a_loss_is_divided_by_the_ranks_where_the_number_and_the_text_say_so(tmp_path, text, backwards, said):
    """Half of a loss on two ranks may be meant; so is a part of what is accumulated."""
    program = tmp_path / "t.py"
    program.write_text(text)
    last = len(text.splitlines())

    def rows(r):
        backs = [Backward(n, n, 1.0, False, "", False, 0, n, site=1, divided=[2.0]) for n in (1, 2, 3)]
        steps = [step(n, [part()], backwards=backwards) for n in (1, 2, 3)]
        return rank(r, [Site(1, str(program), last), *backs, *steps])

    found = judge([rows(0), rows(1)])
    assert [(v.invariant, v.line) for v in found] == ([("loss-divided", said)] if said else [])


def test_numbers_that_divide_a_loss_are_read_from_its_last_operations():
    """Also where it was multiplied with their inverse; weights below 1 divide nothing."""
    torch = pytest.importorskip("torch")
    mean = torch.ones(3, requires_grad=True).mean()
    assert divisors((mean / 4).grad_fn) == [4.0]
    assert divisors((mean * 0.25 / 3).grad_fn) == [3.0, 4.0]
    assert divisors((mean * 2.0).grad_fn) == divisors(mean.grad_fn) == []
    assert divisors((mean / mean).grad_fn) == []


@pytest.mark.parametrize(
    ("more", "rate", "text"),
    [
        ({"p1": "w"}, 0.1, "lost in rounding"),
        ({"p1": "w", "gs": [0.0]}, 0.1, "gradients of 0"),
        ({}, 0.0, "learning rate of 0"),
        ({}, 0.1, ""),
    ],
)
def test_steps_that_change_no_weight_are_named_with_why(more, rate, text):
    """All of them: one that begins with a rate of 0, to warm up, changes weights later."""

    def steps(count, late):
        return [step(n, [part(**more)], 0.1 if late and n > count - 1 else rate) for n in range(1, count + 1)]

    found = judge([rank(r, steps(8, late=False)) for r in (0, 1)])
    assert [v.invariant for v in found] == ["weights-unchanged"] * bool(text)
    assert not text or text in found[0].means
    assert not names(*(rank(r, steps(7, late=False)) for r in (0, 1)))
    assert rate or not names(*(rank(r, steps(8, late=True)) for r in (0, 1)))


@pytest.mark.parametrize(("divided", "said"), [(1, ["weights-summed"]), (2, [])])
def test_weights_that_are_averaged_and_not_divided_are_named(divided, said):
    """Each rank has the sum of what all had after the step before."""
    after = [[1.0, 2.0, -3.0], [1.5, 1.0, -2.0]]
    begin = [sum(pair) / divided for pair in zip(*after, strict=True)]
    rows = [
        rank(r, [step(1, [part(kind="own", m=-1, group=[], p1s=after[r], p1=f"v{r}")]),
                 step(2, [part(kind="own", m=-1, group=[], p0s=begin, p0="x")])]) for r in (0, 1)
    ]  # fmt: skip
    assert names(*rows) == said


@pytest.mark.parametrize(
    ("since", "said"),
    [({"synced": 1, "last": 0}, ["not-reduced"]), ({"synced": 1, "last": 1}, []), ({"synced": 1}, [])],
)
def test_the_last_pass_of_a_sharded_model_is_reduced(since, said):
    """Of several before a step; a release that does not tell is not judged."""
    sets = [part(kind="shards", since={"forward": 2, **since})]
    assert names(*(rank(r, [step(n, sets, backwards=2) for n in (1, 2, 3)]) for r in (0, 1))) == said


@pytest.mark.parametrize(
    ("text", "rate_beside", "said"),
    [
        ("optimizer = SGD(model.parameters(), lr=rate // 500)", None, True),
        ("plan = LambdaLR(optimizer, lambda s: s // 500)", 0.0, True),
        ("optimizer = SGD(model.parameters(), lr=0.0)", None, False),
        ("optimizer = SGD(model.parameters(), 0)", None, False),
        ("groups = [{'params': p, 'lr': 0.0}]", None, False),
        ("group['lr'] = 0.0", None, False),
        ("plan = LambdaLR(optimizer, lambda s: s // 500)", 0.1, False),
    ],
)
def test_a_rate_of_0_that_is_meant_is_not_named(tmp_path, text, rate_beside, said):
    """The program's text gives it, or another optimizer of the rank steps, as where a part rests for a while."""
    program = tmp_path / "t.py"
    program.write_text(text)

    def rows(r):
        steps = [step(n, [part()], 0.0, site=1) for n in range(1, 9)]
        if rate_beside is not None:
            steps += [step(n, [part(m=1)], rate_beside, o=1, site=1) for n in range(1, 9)]
        return rank(r, [Site(1, str(program), 1), Model(1, "ddp", [0, 1]), *steps])

    assert set(names(rows(0), rows(1))) == ({"weights-unchanged"} if said else set())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (lambda r, n: [100 * r + 8 * n + k for k in range(8)], []),
        (lambda r, n: [(40 * r + 8 * n + k) % 48 for k in range(8)], ["samples-shared"]),
        (lambda r, n: [100 * r + 8 * n + k for k in range(7)] + [0], []),  # one sample of padding in each batch
        (lambda r, n: [k % 3 for k in range(8)], []),  # a data set that holds the same ones again and again
    ],
)
def test_samples_that_two_ranks_share_in_an_epoch_are_named(given, said):
    """Beyond padding, and beyond what comes twice on one rank."""
    rows = [rank(r, [Batch(0, 1, n, f"{r}{n}", n, n, rows=given(r, n)) for n in range(1, 6)]
                 + [step(1, [part()])]) for r in (0, 1)]  # fmt: skip
    assert names(*rows) == said


def test_a_loader_whose_workers_or_steps_begin_anew_is_named():
    """Each worker gives the same batch; each step takes the first one. Not an epoch of one batch, or one that ends."""

    def of(hashes, **more):
        return [rank(r, [Batch(0, 1, n, f"{r}{h}", n, n, **more) for n, h in enumerate(hashes, 1)]) for r in (0, 1)]

    def begun(hashes, *ends, **more):
        rows = [Batch(0, e, 1, h, e, e, **more) for e, h in enumerate(hashes, 1)]
        return [rank(r, [*(msgspec.structs.replace(row, h=f"{r}{row.h}") for row in rows), *ends]) for r in (0, 1)]

    assert names(*of("aabbcc", workers=2)) == ["workers-repeat"]
    assert not names(*of("abcdef", workers=2)) + names(*of("aabbcc")) + names(*of("aaaaaa", workers=2))
    assert names(*begun("aaaa")) == ["batch-repeats"]
    assert not names(*begun("aaaa", of=1)) + names(*begun("abcd")) + names(*begun("aaa"))
    assert not names(*begun("aaaa", *(Epoch(0, e, 1, 1, e) for e in (1, 2, 3, 4))))


def test_samples_are_told_apart_by_what_they_hold():
    """By their own hashes, in whatever the batch is; numbers alone, or a place on the disk, tell nothing."""
    torch = pytest.importorskip("torch")
    data = torch.arange(48.0).reshape(6, 8)
    assert fingerprints.rows((data, torch.arange(6))) == fingerprints.rows({"x": data})
    assert len(set(fingerprints.rows({"mask": torch.ones(6, 8, dtype=torch.bool), "x": data}))) == 6
    assert len(set(fingerprints.rows(data))) == 6
    assert fingerprints.rows(data[2:4]) == fingerprints.rows(data)[2:4]
    assert fingerprints.rows(torch.arange(6)) == fingerprints.rows([data[:, :2]]) == fingerprints.rows("file.bin") == []


@pytest.mark.parametrize(
    ("sampler", "said"),
    [
        ({}, []),
        ({"seed": lambda r: r}, ["order-differs"]),
        ({"epoch": lambda r: 3 * r}, ["order-differs"]),
        ({"replicas": lambda r: 4}, ["samples-left-out"]),
    ],
)
def test_samplers_divide_one_order_and_leave_nothing_out(sampler, said):
    """Another seed or epoch on one rank; more parts than ranks read."""

    def rows(r):
        own = {name: value(r) for name, value in sampler.items()}
        values = {"epoch": 0, "replicas": 2, **own}
        return rank(r, [Order(i=0, n=1, shuffle=True, rank=r, s=1, loader=0, e=1, **values), Epoch(0, 1, 8, 8, 1)])

    assert names(rows(0), rows(1)) == said


def test_a_loader_that_is_seeded_anew_repeats_its_order():
    """Only one that draws it; trained on in both epochs."""

    def rows(r, shuffles, second):
        return rank(r, [
            Batch(0, e, n, f"{r}{n + e * second}", n, n + 10 * e, shuffles=shuffles) for e in (1, 2) for n in (1, 2, 3)
        ])  # fmt: skip

    assert names(*(rows(r, True, 0) for r in (0, 1))) == ["order-repeats"]
    assert not names(*(rows(r, False, 0) for r in (0, 1)))
    assert not names(*(rows(r, True, 7) for r in (0, 1)))


@pytest.mark.parametrize(("calls", "apart", "said"), [(["send"], 1, True), (["send"], 0, False), ([], 1, False)])
def test_stages_of_one_pipeline_read_the_same_samples(calls, apart, said):
    """Ranks that send nothing to each other may hold copies, which read other samples."""

    def stage(r):
        found = Rank(r, "host", 2)
        reads = [Fetch(-1, 1, n, n + 100 * r * apart, {}, n, file="t.py", line=4, size=8) for n in (1, 2, 3)]
        own = [step(n, [part(kind="own", m=-1, group=[], p0=f"{r}")], calls=calls) for n in (1, 2)]
        found.add([FirstStep(True, r, 2), *reads, *own])
        return found

    assert ("stages-read-apart" in names(stage(0), stage(1))) is said


@pytest.mark.parametrize(("ratio", "hook", "said"), [(0.5, "", True), (0.5, "own divisor", False), (1.0, "", False)])
def test_shards_of_gradients_are_not_divided_once_more(ratio, hook, said):
    """Unless the program has chosen by what their sums are divided."""

    def sharded(r):
        found = Rank(r, "host", 2)
        sets = [part(kind="shards", ratio=ratio, hook=hook, p0=str(r), p1=f"{r}v")]
        found.add(
            [FirstStep(True, r, 2), Model(0, "fully_shard", [0, 1]), *(step(n, sets, models=[0]) for n in (1, 2))]
        )
        return found

    assert names(sharded(0), sharded(1)) == ["averaged-twice"] * said


def test_ranks_that_step_with_parts_of_the_weights_are_no_copies():
    """Reduced by hand, as ZeRO does; what was equal at the first step did not begin otherwise."""

    def ends(own=2, op="SUM", start="w", **more):
        rows = {}
        for r in (0, 1):
            values = {"kind": "own", "m": -1, "own": own, "op": op, "p0": f"w{r}", "p0s": [1.0 + r], **more}
            begun = part(**{**values, "own": 0, "p0": start or f"w{r}", "p0s": [1.0] if start else [1.0 + r]})
            rows[r] = rank(r, [step(1, [begun]), *(step(s, [part(**values)]) for s in (2, 3))])
        return names(*rows.values())

    assert ends(start="") == ["initial-weights-differ"]
    assert ends() == ["gradients-differ"]
    assert not ends(start="", other=128)
    assert ends(op="MAX", p0="w", p0s=[1.0]) == ["not-averaged"]


def test_a_batch_that_was_only_looked_at_is_no_epoch():
    """The sampler begins once for it and once for the epoch; only what is trained on counts."""

    def orders(*epochs):
        def rows(r):
            for n, epoch in enumerate(epochs, 1):
                yield Order(0, n, epoch, True, 2, r, n, loader=0, e=n, backwards=8 * n)
                if n % 2 == 0:
                    yield Epoch(0, n, 8, 8, n)

        return names(*(rank(r, list(rows(r))) for r in (0, 1)))

    assert orders(0, 0, 0, 0) == ["order-repeats"]
    assert not orders(0, 0, 0, 1)


@pytest.mark.parametrize(
    ("samplers", "data", "trained", "said"),
    [((0, 0), (1, 1), 8, True), ((0, 1), (1, 1), 8, True), ((0, 1), (1, 2), 8, False), ((0, 0), (1, 1), 0, False)],
)
def test_an_order_repeats_in_a_loader_made_anew(samplers, data, trained, said):
    """With its sampler or without; not over other data, and not where two loaders are read side by side."""

    def rows(r):
        for n, (sampler, number) in enumerate(zip(samplers, data, strict=True)):
            yield Order(sampler, 1, 0, True, 2, r, 1, loader=n, e=1, data=number, samples=32, backwards=trained * n)
            yield Epoch(n, 1, 8, 8, 1)

    assert ("order-repeats" in names(*(rank(r, list(rows(r))) for r in (0, 1)))) is said


def test_sums_of_bits_differ_where_a_bit_does():
    """Of each type, odd lengths, and views that begin within a word of 8 bytes."""
    torch = pytest.importorskip("torch")
    for kind in (torch.float32, torch.bfloat16, torch.float64, torch.int8, torch.complex64):
        for n in (1, 3, 8, 1001):
            one = torch.arange(n).to(kind)
            longer = torch.zeros(n + 1, dtype=kind)
            longer[1:] = one
            other = one.clone()
            other[-1] = -1 - other[-1]
            assert (
                fingerprints.hashes([one])[0] == fingerprints.hashes([longer[1:]])[0] != fingerprints.hashes([other])[0]
            )
    assert fingerprints.finite([torch.full((9,), 3e38)])  # though their sum is not
    assert not fingerprints.finite([torch.ones(3), torch.tensor([1.0, math.inf, -math.inf])])


def test_gradients_that_another_backward_pass_went_through_are_cleared_before_the_step(tmp_path):
    """The discriminator of a GAN gets gradients from the generator's pass too, and clears them before its own."""
    torch = pytest.importorskip("torch")
    kept = WatchNotes(str(tmp_path))
    for clears, expected in ((True, True), (False, False)):
        steps = Steps(kept, Models(kept))
        weight = torch.ones(4, requires_grad=True)
        optimizer = torch.optim.SGD([weight], 0.1)
        for _ in range(2):
            if clears:
                optimizer.zero_grad()
            for clearing in (False, True):  # its own pass and step, then the other's
                loss = (weight * weight).sum()
                steps.backward(loss, None)
                loss.backward()
                steps.after_backward()
                if not clearing:
                    steps.before_step(optimizer, (optimizer,), {})
                    seen = steps._known[optimizer].cleared
                    optimizer.step()
                    steps.after_step(optimizer)
        assert (seen is not False) is expected


def test_a_clip_that_can_not_do_what_it_says_is_named():
    """Gradients that are scaled; once they were divided, or the program has asked for the scale, they are not."""
    torch = pytest.importorskip("torch")
    said = []

    class Kept:
        dead, spent = False, 0.0

        def put(self, kind, **values):
            said.append((kind, values["how"]))

        def site(self, frame):
            return 0

        def fails(self, error, where):
            raise error

    class Stepping:
        now, done = 1, 0
        reductions = types.SimpleNamespace(clipped={})

        def note_scaling(self):
            pass

    class Scaler(torch.amp.GradScaler):
        pass

    kept = Kept()
    clipping = Clipping(kept, Stepping(), Models(kept))
    grads = types.SimpleNamespace(clip_grad_norm_=lambda p, n: n, clip_grad_value_=lambda p, n: n)
    clipping.patch(grads)
    clipping.patch_scaler(types.SimpleNamespace(GradScaler=Scaler))
    weight = torch.ones(2, requires_grad=True)
    scaler = Scaler("cpu")
    scaler.scale(weight.sum()).backward()
    scaler.unscale_(torch.optim.SGD([weight]))
    grads.clip_grad_norm_([weight], 1.0)
    scaler.scale(weight.sum())
    scaler.get_scale()
    grads.clip_grad_norm_([weight], 1.0)
    assert said == []
    scaler.scale(weight.sum())
    grads.clip_grad_value_((w for w in [weight]), 1.0)
    assert said == [("clip", "scaled")]


@pytest.mark.parametrize(("clips", "expected"), [("late", ["late"]), ("both", []), ("measured", [])])
def test_a_clip_after_the_step_is_named_unless_it_only_measures(tmp_path, clips, expected):
    """Gradients that a step has used are clipped in vain; where they were clipped before as well nothing is said."""
    torch = pytest.importorskip("torch")
    notes = WatchNotes(str(tmp_path))
    steps = Steps(notes, Models(notes))
    clipping = Clipping(notes, steps, Models(notes))
    said = types.SimpleNamespace(clip_grad_norm_=torch.nn.utils.clip_grad_norm_, clip_grad_value_=None)
    clipping.patch(said)
    weight = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([weight], 0.1)
    for _ in range(5):
        loss = (weight * 3).sum()
        steps.backward(loss, None)
        loss.backward()
        if clips == "both":
            said.clip_grad_norm_([weight], 1.0)
        steps.before_step(optimizer, (optimizer,), {})
        optimizer.step()
        steps.after_step(optimizer)
        said.clip_grad_norm_([weight], 1e9 if clips == "measured" else 0.5)
        optimizer.zero_grad()
    notes.flush()
    rows = [json.loads(line) for path in tmp_path.glob("*.jsonl") for line in path.read_text().splitlines()]
    assert [row["how"] for row in rows if row["k"] == "clip"] == expected


def test_outputs_that_are_gathered_without_a_gradient_are_named_where_it_reaches_nobody(tmp_path):
    """A gathered output has no graph; a rank that puts its own part back has one."""
    torch = pytest.importorskip("torch")
    notes = WatchNotes(str(tmp_path))
    models = Models(notes)
    lost = LostWork(notes, models, Steps(notes, models))
    first, second = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], 0.1)
    for _ in range(4):
        optimizer.zero_grad()
        a, b = first(torch.ones(1, 2)), second(torch.ones(1, 2))
        lost.gathers("all_gather", [a], sys._getframe(0))
        lost.gathers("all_gather", [b], sys._getframe(0))
        (a.detach() * b).sum().backward()
        lost.before_step(optimizer)
    notes.flush()
    rows = [json.loads(line) for path in tmp_path.glob("*.jsonl") for line in path.read_text().splitlines()]
    assert [(row["call"], row["n"]) for row in rows if row["k"] == "gathered"] == [("all_gather", 2)]
    first.weight.grad = torch.ones(2, 2)  # a loss that comes later takes it back
    lost.before_step(optimizer)
    notes.flush()
    found = Rank(0, "host", 2)
    assert '"n":0' in written(tmp_path)
    found = Rank(0, "host", 2)
    found.add([GatheredOutput("all_gather", 1, n, site=7) for n in (2, 0)])
    assert not names(found)


def written(folder):
    """All that was noted."""
    return "".join(path.read_text() for path in folder.glob("*.jsonl"))


@pytest.mark.parametrize(
    ("then", "said"),
    [("nothing", True), ("fits", False), ("load", False), ("copy", False), ("other", False), ("fresh", True)],
)
def test_a_load_that_fills_nothing_is_noted_unless_its_values_come_by_another_way(tmp_path, then, said):
    """A second load with other names, a copy by hand, or another part of the model that takes them."""
    torch = pytest.importorskip("torch")
    notes = WatchNotes(str(tmp_path))
    models = Models(notes)
    patched = types.SimpleNamespace(Module=type("Own", (torch.nn.Linear,), {}))
    lost = LostWork(notes, models, Steps(notes, models))
    lost.patch(patched)
    model, saved, other = (patched.Module(2, 2) for _ in range(3))
    state = saved.state_dict()
    model.load_state_dict(state if then == "fits" else {f"module.{n}": v for n, v in state.items()}, strict=False)
    match then:
        case "load":
            model.load_state_dict({n: v.double() for n, v in state.items()})
        case "copy":
            model.weight.data.copy_(state["weight"])
        case "other":
            other.load_state_dict(state)
        case "fresh":
            model.reset_parameters()
    lost.before_step(torch.optim.SGD(model.parameters(), 0.1))
    notes.flush()
    assert ("module.weight" in written(tmp_path)) is said
    assert (model in models.loaded) is (then in {"fits", "load"})


def alone(group=(), **more):
    """The parameters of a step beside any wrapper."""
    return part(kind="own", m=-1, group=list(group), **more)


def test_steps_that_another_rank_overwrites_are_named():
    """Each trains by itself, and all go on from what rank 0 had; where gradients were exchanged nothing is said."""
    for own, calls, said in ((0, ["broadcast"], ["steps-discarded"]), (0, ["reduce"], []), (2, ["all_reduce"], [])):
        ranks = [
            rank(number, [
                step(s, [
                    alone(range(2) if own else (), own=own, p0=f"w{s}", p0s=[s], p1="x" if number else f"w{s + 1}",
                          p1s=[s + 1 + 5.0 * number])
                ], calls=calls)
                for s in range(1, 6)
            ])
            for number in (0, 1)
        ]  # fmt: skip
        assert ("steps-discarded" in names(*ranks)) == bool(said), calls


def test_gradients_that_another_rank_got_are_named_where_weights_part():
    """reduce() gives the sum to one rank; a rank that holds other parameters, or gets the weights, is well."""
    for differs, rooted, said in ((True, 2, True), (False, 2, False), (True, 1, False)):
        ranks = [
            rank(number, [
                step(s, [alone(rooted=rooted * number, p0=f"w{number * differs}", p0s=[1.0 + number * differs])])
                for s in range(1, 5)
            ])
            for number in (0, 1)
        ]  # fmt: skip
        assert ("reduced-to-one-rank" in names(*ranks)) is said


def test_copies_along_a_mesh_that_never_meet_are_named():
    """Stages of a pipeline may begin equal by one seed: only what the mesh calls copies is compared."""
    mesh = Mesh([2, 2], ["dp", "pp"], [0, 1, 2, 3])

    def ranks(calls=("isend", "irecv"), at=mesh, **more):
        return [
            rank(n, [
                at, *(step(s, [alone(p0=f"{s}{n * (s > 1)}", p0s=[s + n * (s > 1.0)], **more)], calls=list(calls))
                      for s in (1, 2, 3))
            ])
            for n in range(4)
        ]  # fmt: skip

    def bare(found):
        for one in found:
            one._by_kind.pop(Model)
        return [(v.invariant, v.ranks) for v in judge(found)]

    assert bare(ranks()) == [("never-reduced", (0, 2))]
    assert not bare(ranks(calls=["isend", "irecv", "all_reduce"]))
    assert not bare(ranks(at=Mesh([2, 2], ["pp", "tp"], [0, 1, 2, 3])))


@pytest.mark.parametrize(("begins", "said"), [([0.4, 0.1], True), ([0.0, 0.0], False)])
def test_an_optimizer_beside_the_wrapped_model_is_named(begins, said):
    """As of a discriminator that nobody wraps; what begins as zeros may be each rank's own, as codes of its samples."""
    rows = [
        rank(n, [
            *(step(s, [part()]) for s in (1, 2, 3)),
            *(step(s, [alone(p0=f"{s}{n * (s > 1)}", p0s=[b + n * (s - 1) for b in begins])], o=1) for s in (1, 2, 3)),
        ])
        for n in (0, 1)
    ]  # fmt: skip
    assert ("parameters-outside-ddp" in names(*rows)) is said
    assert own_beginnings(rows) == ()


def test_parameters_of_each_rank_s_own_are_not_called_healthy():
    """They may be meant so, as experts are: said, and not judged."""
    rows = [
        rank(n, [*(step(s, [part()]) for s in (1, 2, 3)),
                 *(step(s, [alone(p0=f"{s}{n}", p0s=[0.4 + n, 0.1])], o=1) for s in (1, 2, 3))])
        for n in (0, 1)
    ]  # fmt: skip
    assert "parameters-outside-ddp" not in names(*rows)
    (note,) = own_beginnings(rows)
    assert note.startswith("not judged: the optimizer")


def test_ranks_that_join_early_are_compared_up_to_there():
    """With fewer batches a rank's forward passes do not count the same steps as those of the others."""
    ranks = [
        rank(n, [
            Join(),
            *(step(s, [part(p0=f"{s}", p1=f"{s + 1}")], f={"0": s}) for s in range(1, 4 + n)),
            Join({"0": 3 + n}),
            *(step(s, [part(p0=f"{s}")], f={"0": s - 1 + n}) for s in range(5, 8)),
        ])
        for n in (0, 1)
    ]  # fmt: skip
    assert not names(*ranks)


@pytest.mark.parametrize(("loaded", "said"), [((False, True), True), ((True, False), False), ((True, True), False)])
def test_loaded_weights_that_wrapping_replaces_are_named(loaded, said):
    """DistributedDataParallel gives all ranks the weights of the first."""
    ranks = [rank(n, [Model(0, "ddp", [0, 1], p="w", ps=[1.0], loaded=loaded[n])]) for n in (0, 1)]
    assert ("loaded-weights-overwritten" in names(*ranks)) is said


# --- notes that are hostile, cut, or not there


def test_notes_of_another_form_are_left_out(tmp_path):
    """A cut line, another version, numbers that can't be, a file that is no text."""
    (tmp_path / "watch").mkdir()
    encode = msgspec.json.Encoder().encode
    good = b"\n".join(
        map(encode, (Process(5, rank=0, world=2), FirstStep(True, 0, 2), DroppedWork("all_reduce", 0, 3)))
    )
    (tmp_path / "watch" / "1.jsonl").write_bytes(good + b'\n{"k":"dropped","call":7}\n{"k":"new"}\n{"k":"drop')
    (tmp_path / "watch" / "2.jsonl").write_bytes(os.urandom(4096) + b"\n" + b"[" * 10_000)
    (tmp_path / "watch" / "3.jsonl").write_bytes(
        b'{"k":"process","pid":1,"rank":99999999999}\n{"k":"begun","initialized":true}'
    )
    assert [r.rank for r in read_ranks(tmp_path / "watch")] == [0]
    found = watch_result(tmp_path)
    assert [(v.invariant, v.ranks, v.step) for v in found.violations] == [("work-dropped", (0,), 3)]
    assert watch_result(tmp_path / "elsewhere") is None


def test_names_of_files_do_not_steer_a_terminal(tmp_path):
    """What a rank wrote is cleaned before it is shown."""
    (tmp_path / "watch").mkdir()
    lines = ['{"k":"process","pid":5,"rank":0}', '{"k":"site","i":1,"file":"a\\u001b[31m.py","line":3}',
             '{"k":"dropped","call":"all_reduce\\u001b[2J","site":1,"s":1}']  # fmt: skip
    (tmp_path / "watch" / "1.jsonl").write_text("\n".join(lines))
    found = watch_result(tmp_path).violations[0]
    assert found.file == "a.py"
    assert "\x1b" not in found.means


def test_what_fails_inside_disarms_itself_with_one_line(tmp_path, capsys):
    """And writes why; nothing more is noted."""
    notes = WatchNotes(str(tmp_path))
    notes.fails(ValueError("no\nsuch thing"), "steps")
    notes.fails(ValueError("again"), "steps")
    notes.put("join")
    notes.end()
    assert capsys.readouterr().err.count("\n") == 1
    text = next(tmp_path.glob("*.jsonl")).read_text()
    assert "no such thing" in text
    assert '"join"' not in text


def test_a_captured_graph_ends_the_watch_before_anything_is_read(tmp_path, capsys, monkeypatch):
    """To wait for a value would break the capture; before CUDA is in use nothing asks for it."""
    in_use, capturing, seen = [False], [False], []
    cuda = types.SimpleNamespace(is_initialized=lambda: in_use[0], is_current_stream_capturing=lambda: capturing[0])
    monkeypatch.setitem(sys.modules, "torch.cuda", cuda)
    looking = types.SimpleNamespace(notes=WatchNotes(str(tmp_path)))
    look = guard_method(lambda self: seen.append(1))
    capturing[0] = True
    look(looking)
    in_use[0], capturing[0] = True, False
    look(looking)
    assert len(seen) == 2

    capturing[0] = True
    look(looking)
    look(looking)
    said = capsys.readouterr().err
    assert len(seen) == 2
    assert (1, True) == (said.count("\n"), "a CUDA graph is captured" in said)


def test_looks_get_rarer_as_they_cost_and_stay_common_to_all_ranks(tmp_path):
    """Powers of two: the steps of the rarer are among those of the more frequent."""
    dear, cheap = WatchNotes(str(tmp_path)), WatchNotes(str(tmp_path))
    dear.spent = math.inf
    often, seldom = ({n for n in range(1, 300) if notes.looks(n)} for notes in (cheap, dear))
    assert often == set(range(1, 300))
    assert set(range(1, 9)) <= seldom < often
    assert len(seldom) < 40
    dear.dead = cheap.dead = True  # nothing is written at the end


def test_a_notebook_shows_a_row_for_each_and_no_markup_of_others():
    """As text and as static HTML; a job that is only named in an earlier cell is not started again without `--yes`."""
    row = {
        "invariant": "summed",
        "ranks": [0, 1],
        "step": 3,
        "file": "/x/t<b>.py",
        "line": 7,
        "means": "<i>twice\x1b[2J",
    }
    said = {"watch": [row], "late": [], "notes": ["watch: ranks 0-1"], "verdict": {"summary": "It ended."}}
    assert "summed  ranks 0-1  step 3  t<b>.py:7  <i>twice" in instrument_cell.plain(said)
    card = instrument_cell.html(said)
    assert "t&lt;b&gt;.py:7" in card
    assert 8 == card.count("white-space:nowrap")  # a word is not broken to fit a narrow column
    assert "<i>" not in card
    assert "\x1b" not in card + instrument_cell.plain(said)
    assert "Nothing that must hold was violated" in instrument_cell.plain({**said, "watch": []})
    history = types.SimpleNamespace(input_hist_raw=["!torchrun t.py"])
    extension = types.SimpleNamespace(shell=types.SimpleNamespace(history_manager=history))
    instrument_cell.show_watch(extension, [])
    with pytest.raises(ValueError, match="no option --no"):
        instrument_cell.show_watch(extension, ["--no", "--", "torchrun", "t.py"])


def test_what_may_be_meant_is_said_later_and_nothing_twice(tmp_path):
    """Only what two looks have shown; gradients that are not averaged may be followed by an exchange of weights."""
    said = []
    announcer = Announcer(tmp_path, said.append)
    (tmp_path / "watch").mkdir()
    encode = msgspec.json.Encoder().encode

    def write(steps):
        for r in (0, 1):
            rows = [
                Process(r + 5, rank=r, world=2),
                FirstStep(True, r, 2),
                Model(0, "ddp", [0, 1]),
                DroppedWork("all_reduce", 0, 2),
            ]
            rows += [step(s, [part(g=f"{r}", gs=[r + 1.0], p0=f"{s}", p1=f"{s + 1}")]) for s in range(1, steps + 1)]
            (tmp_path / "watch" / f"{r}.jsonl").write_bytes(b"\n".join(map(encode, rows)))

    write(3)
    for later in (100, 200, 300):
        announcer.tick(time.monotonic() + later)
    assert [text.split(":")[1] for text in said] == [" work-dropped"]
    write(40)
    for later in (400, 500, 600):
        announcer.tick(time.monotonic() + later)
    assert [text.split(":")[1] for text in said] == [" work-dropped", " gradients-differ so far"]


# --- what it means


def test_each_invariant_is_an_indicator():
    """What the comparisons can name points at a symptom of silent faults and leads the diagnosis."""
    experiments = ROOT / "kernel/dtdebug/experiments"
    judges = ("invariants/judge/*.py", "parity/judge/*.py", "nonfinite/judge.py")
    source = "".join(path.read_text() for files in judges for path in experiments.glob(files))
    indicators = {name for e in load().evidence.values() for name in e.watch}
    for name in indicators:
        assert name.startswith("late ") or f'"{name.removeprefix("parity-")}"' in source, name
        if not name.startswith("late "):
            seen = Violation(invariant=name, ranks=(1,), step=2, symptom="D.2.4", means="It was so.")
            diagnosis = diagnose(load(), Snapshot(watched=(seen,)))
            assert diagnosis.recognised, name
            assert diagnosis.symptoms[0].code in {"D.2.2", "D.2.4", "D.2.5"}, name
    assert len(indicators) >= 30
    assert AnyRecord


@pytest.mark.parametrize("width", [80, 60])
def test_the_answer_has_the_fix_of_what_was_seen_as_a_whole(width):
    """That of the class of causes says less, and half of a fix is none."""
    fix = "Broadcast the weights of rank 0 before the first step, or wrap the model in DistributedDataParallel."
    means = "Ranks 0-1 begin with different weights and average their gradients: each trains another model."
    seen = Violation(
        invariant="initial-weights-differ", ranks=(0, 1), step=1, symptom="D.2.5", means=means, fix=fix,
        file="train.py", line=7,
    )  # fmt: skip
    snapshot = Snapshot(watched=(seen,), notes=("watch: " + "looks at steps, " * 12,))
    answer = build_answer(diagnose(load(), snapshot), snapshot)
    assert answer.fix is not None
    assert (answer.headline, answer.fix.text) == (means, fix)
    lines = lay_out(answer, width, collected="/runs/" + "r" * 40)
    said = " ".join(line.text.strip() for line in lines if line.kind == "fix")
    assert said.startswith("Fix   Broadcast the weights of rank 0")
    assert said.endswith(".")
    assert "..." not in said
    assert len(lines) <= 12
    assert violation_line(seen).endswith(f"{means} {fix}")


_EPOCHS = """\
import torch
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler


def main(data, epochs):
    net = DDP(torch.nn.Linear(2, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    sampler = DistributedSampler(data)
    loader = DataLoader(data, sampler=sampler)
    for epoch in range(epochs):
        for batch in loader:
            loss = net.module(batch).sum()
            loss.backward()
            optimizer.step()
"""


@pytest.mark.parametrize(
    ("invariant", "line", "at", "change"),
    [
        ("order-repeats", 13, 9, "+        sampler.set_epoch(epoch)"),
        ("parity-past-the-wrapper", 14, 14, "+            loss = net(batch).sum()"),
        ("parity-uneven-means", 14, 14, ""),
    ],
)
def test_what_was_measured_is_shown_with_the_patch_of_the_check_for_it(
    tmp_path, monkeypatch, invariant, line, at, change
):
    """A cause that was measured keeps its line; no other fault of the file lends its patch."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "train.py"
    file.write_text(_EPOCHS)
    cause = "The cause." if invariant.startswith("parity-") else ""
    seen = Violation(
        invariant=invariant, ranks=(0, 1), step=1, symptom="D.2.4", means="It was so.", file=str(file), line=line,
        cause=cause, fix="Do so.",
    )  # fmt: skip
    found = move_to_causes(WatchResult(violations=(seen,))).violations[0]
    assert found.line == at
    assert (change in found.diff.splitlines()) if change else not found.diff
    snapshot = Snapshot(watched=(found,))
    answer = build_answer(diagnose(load(), snapshot), snapshot)
    assert (answer.fix.text, answer.fix.diff) == ("Do so.", found.diff)


def test_a_check_names_only_invariants_that_are_known():
    """They are those of the indicators of a watched run."""
    known = {name for evidence in load().evidence.values() for name in evidence.watch}
    assert {name for check in load_checks().values() for name in check.measured} <= known


@pytest.mark.parametrize(("losses", "at"), [(1, 12), (2, 15)])
def test_a_finding_at_a_step_is_shown_at_the_one_line_that_a_check_finds_for_it(tmp_path, monkeypatch, losses, at):
    """The step is where the watch looks; the call past the wrapper is what matters, unless there are two."""
    monkeypatch.chdir(tmp_path)
    calls = ["        loss = net.module.energy(batch)"] + ["        loss = loss + net.module.energy(-batch)"] * (
        losses - 1
    )
    text = [
        "import torch",
        "from torch.nn.parallel import DistributedDataParallel as DDP",
        "class Net(torch.nn.Module):",
        "    def forward(self, x):",
        "        return x",
        "    def energy(self, x):",
        "        return self(x).sum()",
        "def main(loader):",
        "    net = DDP(Net())",
        "    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)",
        "    for batch in loader:",
        *calls,
        "        loss.backward()",
        "        optimizer.step()",
    ]
    file = tmp_path / "train.py"
    file.write_text("\n".join(text) + "\n")
    step_line = len(text)
    seen = Violation(
        invariant="not-reduced",
        ranks=(0, 1),
        step=1,
        symptom="D.2.5",
        means="It was so.",
        file=str(file),
        line=step_line,
    )
    found = move_to_causes(WatchResult(violations=(seen,)))
    assert found is not None
    assert [v.line for v in found.violations] == [at]
