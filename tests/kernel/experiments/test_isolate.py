"""`dtdebug isolate`: a failing job is run again with things changed, and the component that is responsible is named."""

import argparse
import json
import math
import os
import random
import re
import signal
import subprocess
import sys
import types
import zipfile
from pathlib import Path

import msgspec
import psutil
import pytest

from dtdebug.cli.main import main
from dtdebug.errors import UsageError
from dtdebug.experiments.isolate import (
    advice,
    memory_limits,
    package_versions,
    recording_diff,
    run_outcome,
    step_time,
    workspace,
)
from dtdebug.experiments.isolate.advice import patch
from dtdebug.experiments.isolate.claims import claims
from dtdebug.experiments.isolate.failure_identity import FailureIdentity, of_case, same_failure
from dtdebug.experiments.isolate.inside import fsdp_options, loaders, seeds, torch_features
from dtdebug.experiments.isolate.inside.record_writer import PartNotes, read_notes
from dtdebug.experiments.isolate.job_command import move_paths, one_host, parse_job, spread
from dtdebug.experiments.isolate.prior_knowledge import parse_answers
from dtdebug.experiments.isolate.run_history import Tries
from dtdebug.experiments.isolate.run_types import RANKS, Run
from dtdebug.experiments.isolate.search import Search
from dtdebug.live.agent.arm import BOOTSTRAP
from dtdebug.notebook import isolate_cell
from dtdebug_taxonomy.checks.run.proving import format_patch
from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.inference.finding import Finding
from dtdebug_taxonomy.inference.next_step import next_step
from dtdebug_taxonomy.knowledge import factors, labs
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.model.claims import Claim, Record
from dtdebug_taxonomy.model.isolation import IsolationResult, ResponsiblePart
from dtdebug_taxonomy.model.ranks import CallSite, CollectiveRef, RankState, Verdict
from dtdebug_taxonomy.model.snapshot import Snapshot
from dtdebug_taxonomy.presentation.case_json import Case

LIMIT = 600
"""Seconds that nothing here may take."""
BOOM = FailureIdentity(
    how="raised", type="ValueError", message="bad value 3", file="train.py", line=7, function="step", text="x"
)
SLOW = FailureIdentity(how="slow", type="step", pace=1.0, text="A step takes 1 s.")
OTHER = msgspec.structs.replace(BOOM, type="KeyError", message="'lr'", line=9)
ALIAS = "from u import DataLoader as DL\n"
PARTS = ("last-batch", "loader-workers", "compile", "amp", "activation-checkpointing", "ddp-unused-parameters")


# --- the command


@pytest.mark.parametrize(
    ("command", "ranks", "changed"),
    [
        ("torchrun --nproc-per-node 4 train.py --np 3", 4, "torchrun --nproc-per-node 2 train.py --np 3"),
        ("torchrun --standalone --nproc_per_node=4 t.py", 4, "torchrun --standalone --nproc_per_node=2 t.py"),
        ("p -m torch.distributed.run --nproc-per-node 8 t", 8, "p -m torch.distributed.run --nproc-per-node 2 t"),
        ("accelerate launch --cpu --num_processes 3 t.py", 3, "accelerate launch --cpu --num_processes 2 t.py"),
        ("mpirun -np 4 python t.py", 4, "mpirun -np 2 python t.py"),
        ("torchrun --nproc-per-node gpu t.py", None, "torchrun --nproc-per-node 2 t.py"),
    ],
)  # fmt: skip
def test_the_number_of_ranks_is_changed_where_the_launcher_has_it(command, ranks, changed):
    """The launcher's own option changes; options of the program with a like name do not."""
    job = parse_job(command.split())
    assert ranks == job.ranks
    assert changed == " ".join(job.with_ranks(2))


def test_an_unknown_launcher_has_no_ranks_to_change():
    """Without a number in the command nothing is invented."""
    for command in ("python train.py --nproc-per-node 4", "torchrun train.py --nproc-per-node 4"):
        job = parse_job(command.split())
        assert job.ranks is None
        with pytest.raises(ValueError, match="does not say"):
            job.with_ranks(2)
    assert 2 == parse_job(["torchrun", "--nnodes", "2", "--nproc-per-node", "4", "t.py"]).hosts


def test_a_job_of_several_hosts_is_put_on_one():
    """What joins it to the others goes; the rest stays."""
    command = (
        "torchrun --nnodes 2 --node_rank=1 --rdzv-backend c10d --rdzv-endpoint a:1 --nproc-per-node 4 t.py --nnodes 2"
    )
    assert "torchrun --standalone --nproc-per-node 4 t.py --nnodes 2" == " ".join(
        one_host(parse_job(command.split())).words
    )


def test_words_and_answers_say_what_need_not_be_run():
    """Both name results of runs; what is said both ways is not taken."""
    told = parse_answers(["compile=fails", "reproducible=sometimes"], "It works on one GPU. It works with gloo.")
    assert {"compile": "same", RANKS: "ok", "gloo-backend": "ok"} == dict(told.results)
    assert (True, (("reproducible", "sometimes"),)) == (told.sometimes, told.answers)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("It works without torch.compile.", {"compile": "ok"}),
        ("With num_workers=0 it runs fine", {"loader-workers": "ok"}),
        ("It fails only with DataLoader workers", {"loader-workers": "ok"}),
        ("With find_unused_parameters=True it works.", {"ddp-unused-parameters": "ok"}),
        ("I use mixed precision and torch.compile.", {}),
        ("It does not work without torch.compile.", {}),
        ("It works with synthetic data.", {"made-up-data": "ok"}),
        (
            "It still fails with num_workers=0, and I get the same error without torch.compile",
            {"loader-workers": "same", "compile": "same"},
        ),
        ("It no longer fails with num_workers=0?", {}),
        ("It does not only fail with workers.", {}),
    ],
)
def test_plain_words_name_the_part_that_makes_the_difference(words, expected):
    """Only what is said to work counts; that something is used is no contrast."""
    assert expected == dict(parse_answers([], words).results)


def test_paths_into_the_working_directory_lead_into_its_copy(tmp_path):
    """Absolute paths and options follow the copy; what is above it stays where it is."""
    (tmp_path / "data").mkdir()
    home, copy = tmp_path / "home", Path("/copy")
    home.mkdir()
    words = ["torchrun", f"{home}/train.py", f"--out={home}/out", "../data", "--lr=../x", "plain"]
    assert ("torchrun", "/copy/train.py", "--out=/copy/out", f"{tmp_path}/data", "--lr=../x", "plain") == move_paths(
        words, home, copy
    )


# --- identity


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ({}, {"message": "bad value 4", "role": "rank 0"}, True),
        ({}, {"type": "builtins.ValueError"}, True),
        ({}, {"type": "KeyError"}, False),
        ({}, {"line": 8}, False),
        ({}, {"message": "Connection closed by peer [127.0.0.1]:4242"}, False),
        ({}, {"how": "ranks"}, False),
        ({"how": "ranks", "type": "skipped", "op": "all_reduce"}, {"how": "ranks", "type": "not_arrived"}, True),
        ({"how": "ranks", "type": "skipped", "op": "a"}, {"how": "ranks", "type": "skipped", "op": "b", "line": 1}, 0),
    ],
)  # fmt: skip
def test_type_and_place_make_a_failure_numbers_and_ranks_do_not(a, b, expected):
    """Numbers in messages and the rank may differ; type, place and what is said may not."""
    assert expected == same_failure(msgspec.structs.replace(BOOM, **a), msgspec.structs.replace(BOOM, **b))


def test_the_identity_is_what_the_case_says():
    """An exception comes from the claim on the culprit, a hang from the verdict, all else from what was printed."""
    record = Record(source="exception", rank=2)
    raised = Claim(
        what="raised", ranks=(2,), record=record, words="ValueError: bad: 3", file="/a/b.py", line=4, function="f"
    )
    dead = Case(verdict=Verdict(kind="dead", culprits=(2,), claims=(raised,), summary="Rank 2 raised."))
    found = of_case(dead, "", 1, 3)
    assert ("raised", "ValueError", "bad: 3", "b.py", 4, "f", "the last rank") == (
        found.how, found.type, found.message, found.file, found.line, found.function, found.role,
    )  # fmt: skip
    site = CallSite(rank=0, file="/a/c.py", line=9, function="g")
    hang = Verdict(kind="skipped", culprits=(0,), sites=(site,), collective=CollectiveRef("all_reduce", 3))
    found = of_case(Case(verdict=hang), "", 124, 4)
    assert ("ranks", "skipped", "all_reduce", "c.py", 9, "rank 0") == (
        found.how, found.type, found.op, found.file, found.line, found.role,
    )  # fmt: skip
    nothing = Case(verdict=Verdict(kind="not_understood"))
    text = 'Traceback (most recent call last):\n  File "/x/run.py", line 3, in go\n    go(1)\nKeyError: 1\n'
    found = of_case(nothing, text, 1, 0)
    assert ("raised", "KeyError", "run.py", 3) == (found.how, found.type, found.file, found.line)
    assert "signal SIGSEGV" == of_case(nothing, "", -11, 0).type


# --- what is changed in the ranks


@pytest.mark.parametrize(
    ("given", "changed"),
    [
        ({"bf16": True, "fp16": False}, {"bf16": False, "fp16": False}),
        ({"dtype": "bfloat16"}, {"dtype": "float32"}),
        ({"mixed_precision": "fp16"}, {"mixed_precision": "no"}),
        ({"precision": 16}, {"precision": 32}),
        ({"precision": "medium", "half": 2}, {"precision": "medium", "half": 2}),
    ],
)
def test_half_precision_is_found_in_the_options_of_a_program(tmp_path, given, changed):
    """Switches go off, names become those of full precision in the same spelling; other values stay."""
    module = types.SimpleNamespace(ArgumentParser=type("ArgumentParser", (argparse.ArgumentParser,), {}))
    notes = PartNotes(str(tmp_path), {"argument.precision": ""}, {})
    torch_features.arguments(module, notes)
    parser = module.ArgumentParser()
    parser.set_defaults(**given)
    assert changed == vars(parser.parse_args([]))
    assert (given != changed) == any(row["kind"] == "set" for row in read_notes(tmp_path))


def test_options_of_fsdp_are_changed_only_where_they_are_used(tmp_path):
    """A policy is replaced by an empty one, the sharding stays gathered, and each is noted."""
    policy = type("MixedPrecisionPolicy", (), {"param_dtype": None})
    seen = []
    module = types.SimpleNamespace(
        fully_shard=lambda model, *, mp_policy=None, reshard_after_forward=None: seen.append(
            (mp_policy.param_dtype, reshard_after_forward)
        )
    )
    fsdp_options.function(module, PartNotes(str(tmp_path), {"fsdp.precision": "", "fsdp.reshard": ""}, {}))
    half = policy()
    half.param_dtype = "bfloat16"
    module.fully_shard(1, mp_policy=half)
    module.fully_shard(1, mp_policy=policy(), reshard_after_forward=False)
    assert [(None, False), (None, False)] == seen
    rows = {(row["kind"], row["name"]) for row in read_notes(tmp_path)}
    assert {
        ("saw", "fsdp.precision"),
        ("set", "fsdp.precision"),
        ("saw", "fsdp.reshard"),
        ("set", "fsdp.reshard"),
    } == rows


def test_seeds_that_differ_between_ranks_are_seen_and_made_alike(tmp_path, monkeypatch):
    """The first seed of each rank is compared; where that is wanted, all get the one of rank 0; workers keep theirs."""
    rows = []
    for rank in "01":
        folder = tmp_path / rank
        folder.mkdir()
        monkeypatch.setenv("RANK", rank)
        module = types.SimpleNamespace(seed=lambda a=None: a)
        seeds.seeds("python", "seed")(module, PartNotes(str(folder), {}, {}))
        assert [7 + int(rank), 5] == [module.seed(7 + int(rank)), module.seed(a=5)]
        rows += read_notes(folder)
    assert "7" == run_outcome.seeds(rows)
    assert run_outcome.seeds([row for row in rows if row["rank"] == "0"]) is None
    module = types.SimpleNamespace(seed=lambda a=None: a)
    seeds.seeds("python", "seed")(module, PartNotes(str(tmp_path), {"seeds": "7"}, {}))
    assert [7, 7] == [module.seed(9), module.seed()]
    monkeypatch.setattr(os, "getpid", lambda: 1)
    assert 9 == module.seed(9)


def test_workers_that_are_started_anew_are_forked_and_threads_are_one(tmp_path, monkeypatch):
    """Both only where the program has them, and each is noted."""
    notes = PartNotes(str(tmp_path), {"loader.start": "", "threads": ""}, {})
    spawned, forked = {"multiprocessing_context": "spawn"}, {"multiprocessing_context": "fork"}
    loaders._start(spawned, notes)
    loaders._start(forked, notes)
    assert ["fork", "fork"] == [spawned["multiprocessing_context"], forked["multiprocessing_context"]]
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    numbers = []
    module = types.SimpleNamespace(set_num_threads=numbers.append)
    seeds.threads(module, notes)
    module.set_num_threads(8)
    assert [1, 1] == numbers
    rows = [(row["kind"], row["name"], row["value"]) for row in read_notes(tmp_path)]
    assert [
        ("saw", "loader.spawned", ""),
        ("set", "loader.start", "fork"),
        ("set", "threads", ""),
        ("saw", "threads", "8"),
    ] == rows


@pytest.mark.parametrize(
    ("words", "asks"),
    [
        (("-c", "import json, sys; json.load(sys.stdin)"), True),
        (("-c", "input()"), True),
        (("-c", "from dtdebug.recorded.flight_recorder.sandbox import main; main()", "1", "1"), False),
        (("-m", "dtdebug", "diagnose", "-"), False),
    ],
)
def test_only_the_program_is_said_to_read_standard_input(tmp_path, words, asks):
    """Processes of our own inherit what observes the ranks; what they read is not the program's."""
    (tmp_path / "notes").mkdir()
    told = {"notes": str(tmp_path / "notes"), "change": {}, "environment": {}, "versions": {}, "ours": [], "begun": 0}
    (tmp_path / "change.json").write_text(json.dumps(told))
    armed = {"PYTHONPATH": BOOTSTRAP, "DTDEBUG_ISOLATE": str(tmp_path / "change.json"), "DTDEBUG_STATE": str(tmp_path)}
    subprocess.run(
        [sys.executable, "-P", *words], env=os.environ | armed, input="[]\n", text=True, capture_output=True,
        check=False, timeout=LIMIT,
    )  # fmt: skip
    names = {row["name"] for row in read_notes(tmp_path / "notes")}
    assert ("process" in names, asks) == (True, "input" in names)


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        ("x = DataLoader(data, batch_size=4)\n", 1, "x = DataLoader(data, batch_size=4, drop_last=True)\n"),
        ("x = DataLoader(\n    data, drop_last=a or b,\n)\n", 1, "x = DataLoader(\n    data, drop_last=True,\n)\n"),
        (f"{ALIAS}y = DL(ä)\n", 2, f"{ALIAS}y = DL(ä, drop_last=True)\n"),
        ("x = DataLoader(data, **options)\n", 1, ""),
        ("x = DataLoader(a), DataLoader(b)\n", 1, ""),
        ("x = Loader(a)\n", 1, ""),
        ("def (:\n", 1, ""),
    ],
)  # fmt: skip
def test_the_change_becomes_a_patch_only_where_one_call_is_meant(tmp_path, text, line, expected):
    """Keywords are replaced or added, aliases count; several calls, ** or broken files give no patch."""
    file = tmp_path / "t.py"
    file.write_text(text)
    assert format_patch("t.py", text, expected) * bool(expected) == patch(
        file, line, ["DataLoader"], {"drop_last": "True"}
    )


def test_a_loader_without_workers_loses_what_it_refuses(tmp_path):
    """The options of workers go with them."""
    file = tmp_path / "t.py"
    file.write_text("x = DataLoader(d, num_workers=4, persistent_workers=True, pin_memory=True)\n")
    assert "+x = DataLoader(d, num_workers=0, pin_memory=True)" in patch(file, 1, ["DataLoader"], {"num_workers": "0"})


def test_a_slow_run_is_one_that_takes_as_long_a_step(tmp_path):
    """The slowest rank counts, without its first window; faster is two thirds of that, or what the user accepts."""
    notes = tmp_path / "watch"
    notes.mkdir()
    for rank, seconds in enumerate((3.0, 6.0)):
        windows = [(30.0, 1), (seconds, 10), (seconds, 10)]
        rows = [{"k": "process", "pid": rank + 1, "host": "h"}, {"k": "begun", "initialized": True, "rank": rank}] + [
            {"k": "phases", "t": 1.0, "seconds": s, "steps": n, "counts": {"other": 10}, "lines": [], "waited": s / 2}
            for s, n in windows
        ]
        (notes / f"{rank}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = step_time.pace(tmp_path, None)
    assert (0.6, "step", False, False) == found
    assert (
        pytest.approx(0.45) == step_time.pace(tmp_path, None, others=0.5).seconds
    )  # half of its waiting was for others
    assert not step_time.pace(tmp_path, None, others=0.5).busy
    first = step_time.failure(found, tmp_path)
    assert first.text.startswith("A step takes 0.6 s.")
    assert [True, False] == [step_time.is_slow(found._replace(seconds=s), first, None) for s in (0.5, 0.3)]
    assert not step_time.is_slow(found, None, above=0.7)
    assert (9.0, "run", False, False) == step_time.pace(tmp_path / "none", 9.0)
    assert step_time.pace(tmp_path / "none", None) is None


def test_a_package_in_another_version_is_beside_that_of_the_user(tmp_path, monkeypatch):
    """pip installs from a folder into an environment of its own, gone afterwards; what can't be had is said."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with zipfile.ZipFile(tmp_path / "alike-1.5-py3-none-any.whl", "w") as wheel:
        wheel.writestr("alike.py", "")
        info = "alike-1.5.dist-info"
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: alike\nVersion: 1.5\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "alike.py,,\n")
    made = package_versions.Releases(tmp_path, sys.executable)
    assert (Path(made.path({"alike": "1.5"}, 120)) / "alike.py").exists()
    with pytest.raises(UsageError, match=r"alike==2\.0: can't be had: .*No matching distribution"):
        made.path({"alike": "2.0"}, 120)
    made.close()
    assert not (tmp_path / "versions").exists()
    assert {"a-b": "1.0+cpu"} == package_versions.asked_releases(["A_b==1.0+cpu"])
    for words in (["a"], ["a==1", "A==2"], ["-e .==1"]):
        with pytest.raises(UsageError, match="isolate --version"):
            package_versions.asked_releases(words)


def test_what_the_recorded_run_was_told_is_what_can_be_changed(tmp_path):
    """Variables that differ get their old value, not those of the launcher; versions and arguments are told."""
    for name, environment, torch in (
        ("a", {"NCCL_ALGO": "Ring", "RANK": "0"}, "2.4"),
        ("b", {"RANK": "1", "X": "1"}, "2.5"),
    ):
        head = {"v": 1, "rank": 0, "world": 2, "command": ["python", f"/{name}/t.py", "1" if name == "a" else "2"],
                "environment": environment, "versions": {"torch": torch}, "seed": 7}  # fmt: skip
        (tmp_path / name).mkdir()
        (tmp_path / name / "rank-0.0.head.jsonl").write_text(json.dumps(head) + "\n")
    then, now = (recording_diff.RecordedRun(tmp_path / name) for name in "ab")
    assert {"NCCL_ALGO": "Ring", "X": "not set"} == then.variables(now)
    assert [
        "torch: 2.4 then, 2.5 now (--version torch==2.4)",
        "arguments: python /a/t.py 1 then, python /a/t.py 2 now",
    ] == (then.told_differently(now, Path("/b"), Path("/a")))
    assert '{"0": 7}' == then.seeds()
    with pytest.raises(UsageError, match="recorded with 2 ranks"):
        recording_diff.checked_recording(tmp_path / "a", 4)


# --- the search


class World:
    """A job that fails as a function of what is changed; every run is counted and takes ten seconds.

    With `takes` it is slow: the seconds of a step are a function of what is changed.
    """

    def __init__(self, fails=None, *, takes=None, uses=("group", "ddp", "ddp.buffers", "loader.workers"), seed=0):
        self.fails, self.takes, self.now, self.count = fails, takes, 0.0, 0
        used = {use for f in factors.load() if f.id in PARTS for use in f.uses}
        self.saw = dict.fromkeys({*used, *uses}, "1")
        self.random = random.Random(seed)

    def run(self, setting, reference, limit):
        self.now, self.count = self.now + 10.0, self.count + 1
        seconds = self.takes(setting, self.random) if self.takes else 0.0
        if self.takes:
            slow = step_time.is_slow(step_time.RunPace(seconds, "step"), reference, None)
            failure = msgspec.structs.replace(SLOW, pace=seconds) if slow else None
        else:
            failure = self.fails(setting, self.random)
        outcome = (
            "ok" if failure is None else "same" if reference is None or same_failure(reference, failure) else "other"
        )
        return Run(factors=dict(setting), outcome=outcome, seconds=10.0, pace=seconds, failure=failure, saw=self.saw)

    def search(self, ranks=4, budget=600.0, known=(), variables=(), told=None, *, agents=1, sometimes=False):
        tries = Tries(self.run, known, budget=budget, told=told, clock=lambda: self.now)
        return Search(
            tries, factors.load(), dict.fromkeys(variables, "not set"), ranks, agents=agents, sometimes=sometimes
        ).run()


def ranks(setting):
    return int(setting.get(RANKS, "4"))


@pytest.mark.parametrize("part", PARTS)
def test_one_responsible_part_is_found_by_halving(part):
    """Whichever part it is, it alone is named, in at most 12 runs, and it is not ruled out."""
    world = World(lambda s, r: None if part in s else BOOM)
    found = world.search()
    assert [part] == [r.factor for r in found.responsible]
    assert found.distributed is False
    assert found.confirmed
    assert world.count <= 12
    assert next(f.same for f in factors.load() if f.id == part) not in found.ruled_out


def test_what_is_only_a_part_of_a_part_is_named_where_it_is_enough():
    """Without loader workers nothing persists either: that they persist is the answer, and it costs one more run."""
    world = World(lambda s, r: None if {"loader-workers", "persistent-workers"} & set(s) else BOOM)
    world.saw["loader.persistent"] = "1"
    found = world.search()
    assert ["persistent-workers"] == [r.factor for r in found.responsible]
    world = World(lambda s, r: None if "loader-workers" in s else BOOM)
    world.saw["loader.persistent"] = "1"
    assert ["loader-workers"] == [r.factor for r in world.search().responsible]


def test_ranks_and_a_part_together_are_named_together():
    """Fails with three and four ranks and the last batch: both are named."""
    found = World(lambda s, r: BOOM if ranks(s) > 2 and "last-batch" not in s else None).search()
    assert [("ranks", ">2"), ("last-batch", "dropped")] == [(r.factor, r.value) for r in found.responsible]
    assert found.distributed is True
    said = {claim.text for claim in claims(found)}
    assert "With 1 rank the job does not fail." in said
    assert any(text.startswith("With 3 ranks, last batch dropped the job does not fail") for text in said)


def test_a_job_of_several_hosts_needs_them_or_not():
    """Agents of torchrun stand for hosts: what fails only with several is told, else one serves for the rest."""
    found = World(lambda s, r: None if "nodes" in s else BOOM).search(ranks=2, agents=2)
    assert (["nodes", "program"], True) == ([r.factor for r in found.responsible], found.distributed)
    assert "LOCAL_RANK" in found.responsible[0].fix
    found = World(lambda s, r: None if "amp" in s else BOOM).search(ranks=2, agents=2)
    assert (["amp"], False) == ([r.factor for r in found.responsible], found.distributed)
    assert {"nodes": "1", RANKS: "1", "amp": "off"} in [run.factors for run in found.runs]
    job = spread(parse_job(["torchrun", "--nnodes", "2", "--master-addr", "h", "--nproc-per-node", "4", "t.py"]))
    assert "torchrun --standalone --nproc-per-node 8 t.py" == " ".join(job.with_counts(1, None))
    assert "2 1 torchrun --nproc-per-node 3 t.py" == " ".join(job.with_counts(None, 3)[4:])


def test_a_slow_job_is_told_in_its_own_words():
    """What is as slow is not said to fail, and the remedy is that of slowness."""
    world = World(takes=lambda s, r: 0.3 if "one-batch" in s else 1.0)
    world.saw["data"] = "9"
    found = world.search()
    assert [("one-batch", True)] == [(r.factor, "num_workers" in r.fix) for r in found.responsible]
    assert ["fails" in went for row in found.rows for _, went in row.tried].count(True) == 0
    assert any("is faster" in claim.text for claim in claims(found))


def test_of_a_slow_job_only_what_matters_by_itself_is_named():
    """Runs alone and runs of all the others tell what a threshold on both together lets through; fewer ranks share."""
    share = {"loader-workers": 0.69, "ddp-unused-parameters": 0.96}
    takes = lambda s, r: math.prod(share.get(name, 1.0) for name in s) * r.uniform(0.99, 1.01)  # noqa: E731
    world = World(takes=takes)
    found = world.search()
    assert (["loader-workers"], True) == ([r.factor for r in found.responsible], found.confirmed)
    row = next(row for row in found.rows if row.title == "find_unused_parameters")
    assert row.says.startswith("by itself it does not change a step by more than 15%")
    means = advice.isolation_result(found, {}).means
    assert re.fullmatch(
        r"A step takes .* s \(3 runs\) as it is, with 1 rank, .* s \(\d runs\) with .*workers 0\.", means
    )
    assert {"loader-workers", "ddp-unused-parameters"} < set().union(*(run.factors for run in found.runs))
    share = {"loader-workers": 0.75, "ddp-unused-parameters": 0.8}
    assert set(share) == {r.factor for r in World(takes=takes).search().responsible}
    world = World(takes=lambda s, r: 0.3 if "amp" in s else ranks(s) / 4)
    found = world.search()
    assert (["amp"], None) == ([r.factor for r in found.responsible], found.distributed)
    assert "faster with 2 ranks" in [row.says for row in found.rows]
    found = World(takes=lambda s, r: ranks(s) / 4).search()
    assert ["ranks", "program"] == [r.factor for r in found.responsible]


@pytest.mark.parametrize("part", ["", "amp"])
def test_of_a_slow_job_whose_equal_runs_differ_no_other_part_is_named(part):
    """Luck names no part; a search that ends before the proof names none either."""
    right = undecided = 0
    for seed in range(30):
        found = World(takes=lambda s, r: (0.1 if part in s else 1.0) * r.uniform(1.0, 1.8), seed=seed).search()
        named = {r.factor for r in found.responsible} - {"program"}
        assert named <= {part}
        right += named == {part}
        undecided += found.undecided.startswith("undecided: step times of equal runs differ by ")
        early = World(takes=lambda s, r: 0.2 if part in s else 1.0, seed=seed).search(budget=10.0 * (3 + seed % 5))
        assert early.unfinished or not part
        assert {r.factor for r in early.responsible} <= {"program"}
    assert right >= 25 if part else undecided


def test_short_steps_that_vary_much_are_told_from_long_ones():
    """A quarter of a second against some hundredths, of which the longest is four times the shortest."""
    takes = lambda s, r: r.uniform(0.017, 0.077) if "amp" in s else r.uniform(0.23, 0.28)  # noqa: E731
    found = [World(takes=takes, seed=seed).search() for seed in range(20)]
    assert {("amp",)} == {tuple(r.factor for r in one.responsible) for one in found}


def test_what_was_measured_is_the_first_advice():
    """Before what is only likely; that of the program itself after a cause that is named; nothing without a search."""
    part = ResponsiblePart(factor="last-batch", title="the smaller last batch", fix="Drop it.", diff="--- a/t.py")
    traceback = 'Traceback (most recent call last):\n  File "/x/t.py", line 3, in go\n    go(1)\nKeyError: 1\n'
    one = Snapshot(
        output=traceback, isolated=IsolationResult(parts=(part,), means="Twice.", sure=True, ruled_out=("Not it.",))
    )
    found = diagnose(load(), one)
    assert ("isolated-last-batch", "likely", "yours") == (
        found.advice[0].cause, found.advice[0].band, found.advice[0].diff_of,
    )  # fmt: skip
    assert ("", ("Not it.",)) == (found.ordinary, found.ruled_out[:1])
    assert diagnose(load(), Snapshot(output=traceback)).ordinary


def test_two_parts_that_are_only_together_enough_are_both_named():
    """The failure goes away only if both are changed."""
    found = World(lambda s, r: None if {"amp", "loader-workers"} <= set(s) else BOOM).search()
    assert {"amp", "loader-workers"} == {r.factor for r in found.responsible}


def test_a_fault_of_the_program_is_not_one_of_distribution():
    """It fails whatever is changed: the program's own line is what is left."""
    found = World(lambda s, r: BOOM).search()
    assert [("program", "train.py:7 in step")] == [(r.factor, r.value) for r in found.responsible]
    assert found.distributed is False
    assert len(PARTS) <= len(found.ruled_out)


def test_one_process_without_a_launcher_is_tried_where_one_rank_fails_too():
    """Only of a program that asks whether a launcher has started it, and only if no part is it."""
    world = World(lambda s, r: None if "no-launcher" in s else BOOM)
    world.saw["launcher.asked"] = "RANK"
    found = world.search()
    assert (["no-launcher"], True) == ([r.factor for r in found.responsible], found.distributed)
    assert world.count <= 12
    fails = World(lambda s, r: BOOM)
    fails.saw["launcher.asked"] = "RANK"
    found = fails.search()
    assert (["program"], False) == ([r.factor for r in found.responsible], found.distributed)
    assert "neither the process group nor what wraps the model for it is it" in found.ruled_out
    with_ranks = World(lambda s, r: None if ranks(s) < 2 or "no-launcher" in s else BOOM)
    with_ranks.saw["launcher.asked"] = "RANK"
    assert not any("no-launcher" in run.factors for run in with_ranks.search().runs)


def test_without_communication_it_does_not_fail():
    """With a backend that sends nothing it is gone: communication is responsible, beside the number of ranks."""
    fails = lambda s, r: BOOM if ranks(s) > 1 and "fake-backend" not in s else None  # noqa: E731
    world = World(fails)
    del world.saw["ddp"], world.saw["ddp.buffers"]
    assert ["ranks", "fake-backend"] == [r.factor for r in world.search().responsible]


def test_another_failure_is_not_taken_for_the_same():
    """A change that makes the job fail otherwise rules nothing in and nothing out."""
    found = World(lambda s, r: OTHER if "compile" in s else None if "amp" in s else BOOM).search()
    assert ["amp"] == [r.factor for r in found.responsible]
    assert "torch.compile is not it" not in found.ruled_out
    assert any(run.outcome == "other" for run in found.runs)


def test_a_part_that_the_job_can_not_do_without_stays_open():
    """Where changing a part makes the job fail otherwise, the program is blamed with that reservation only."""
    found = World(lambda s, r: OTHER if "compile" in s else BOOM).search()
    (program,) = found.responsible
    assert "unless it is torch.compile" in program.text
    assert "mixed precision is not it" in found.ruled_out


def test_a_change_that_is_not_seen_says_nothing():
    """What was not seen to be changed is neither ruled out nor responsible."""
    world = World(lambda s, r: BOOM)
    run = world.run

    def blind(setting, reference, limit):
        done = run(setting, reference, limit)
        return msgspec.structs.replace(done, unproven=tuple(n for n in setting if n == "compile"))

    world.run = blind
    found = world.search()
    assert "compile" in found.unproven
    assert "torch.compile is not it" not in found.ruled_out


FLAKY = [(0.5, "amp", False), (0.66, "", True)]


@pytest.mark.parametrize(("often", "part", "needs_ranks"), FLAKY)
def test_a_flaky_failure_is_followed_by_a_sequential_test(often, part, needs_ranks):
    """What comes only sometimes gets a rate, and in most orders of luck the right part, by few runs."""
    right = wrong = 0
    runs = []

    def fails(setting, luck):
        gone = part in setting or (needs_ranks and ranks(setting) == 1)
        return None if gone or luck.random() > often else BOOM

    for seed in range(8):
        world = World(fails, seed=seed)
        found = world.search(budget=400.0, sometimes=True)
        named = [r.factor for r in found.responsible if r.factor != RANKS]
        right += named == [part or "program"]
        wrong += bool(named) and named != [part or "program"]
        runs.append(world.count)
        assert named or found.unfinished or found.failure is None
        assert found.rate is None or 0 < found.rate[0] <= found.rate[1]
    assert right >= 5
    assert wrong <= 1
    assert sorted(runs)[4] <= 20


def test_a_budget_that_can_not_suffice_ends_the_search_early():
    """How often it fails is said, what stays open, and what that would take; the rest of the budget is not spent."""
    world = World(lambda s, r: None if "amp" in s or ranks(s) == 1 or r.random() > 0.3 else BOOM, seed=5)
    found = world.search(budget=150.0, sometimes=True)
    assert re.match(
        r"it fails in \d+ of \d+ runs; to tell whether it is .+ or .+ takes about \d+ more runs, and the budget",
        found.unfinished,
    )
    assert world.count < 15


def test_fewer_ranks_have_fewer_chances_to_fail():
    """A program whose ranks each fail now and then is not taken for one that needs all its ranks."""
    needs = 0
    for seed in range(8):
        world = World(lambda s, r: BOOM if any(r.random() < 0.25 for _ in range(ranks(s))) else None, seed=seed)
        needs += world.search(budget=400.0).distributed is True
    assert needs <= 2


def test_what_the_user_tells_is_not_run_again():
    """Told results take the place of runs; what is named is confirmed by one; what a run refutes is not believed."""
    fails = lambda s, r: BOOM if ranks(s) > 1 and "compile" not in s else None  # noqa: E731
    plain, told = World(fails), World(fails)
    assert ["ranks", "compile"] == [r.factor for r in plain.search().responsible]
    found = told.search(told={RANKS: "ok", "amp": "same", "compile": "ok"})
    assert ["ranks", "compile"] == [r.factor for r in found.responsible]
    assert told.count < plain.count
    assert [] == [run.factors for run in found.runs if set(run.factors) - {RANKS} == {"amp"}]
    assert 1 == sum("compile" in run.factors for run in found.runs)
    assert "mixed precision is not it" in found.ruled_out
    assert any("as you say" in went for row in found.rows for _, went in row.tried)
    wrong = World(fails).search(told={"amp": "ok"})
    assert ["ranks", "compile"] == [r.factor for r in wrong.responsible]


def test_what_one_rank_asks_of_its_backend_is_of_distribution():
    """It fails with one rank, but not without a backend."""
    world = World(lambda s, r: None if "fake-backend" in s else BOOM)
    del world.saw["ddp"], world.saw["ddp.buffers"]
    found = world.search()
    assert (["fake-backend"], True) == ([r.factor for r in found.responsible], found.distributed)
    world.fails = lambda s, r: None if {"fake-backend", "environment.GLOO_SOCKET_IFNAME"} & set(s) else BOOM
    found = world.search(variables=["GLOO_SOCKET_IFNAME"])  # either would do: what changes less is named
    assert ["environment.GLOO_SOCKET_IFNAME"] == [r.factor for r in found.responsible]


def test_a_job_that_does_not_fail_is_run_three_times():
    """Nothing is changed where nothing fails."""
    world = World(lambda s, r: None)
    found = world.search()
    assert (None, 3, []) == (found.failure, world.count, found.responsible)


def test_what_was_run_is_not_run_again_after_a_resume():
    """A search that ended early goes on where it was and comes to the same answer."""
    fails = lambda s, r: None if "amp" in s else BOOM  # noqa: E731
    early = World(fails).search(budget=35.0)
    assert early.unfinished.startswith("the budget is spent")
    whole, rest = World(fails), World(fails)
    expected = whole.search()
    found = rest.search(known=early.runs)
    assert [r.factor for r in expected.responsible] == [r.factor for r in found.responsible]
    assert whole.count == rest.count + len(early.runs)


# --- what is shown, and when it is proposed


def test_the_card_of_a_notebook_escapes_what_the_job_printed():
    """The table has each row, and nothing of the job becomes markup."""
    failure = {"text": "Rank 0 raised <b>ValueError</b>."}
    row = {"title": "ranks", "tried": [["2 ranks", "fails"], ["1 rank", "ok"]], "says": "needs more than 1 rank"}
    said = {"failure": failure, "table": [row], "answer": "responsible: <i>", "unfinished": ""}
    card = isolate_cell.html(said)
    assert "&lt;b&gt;ValueError" in card
    assert "<i>" not in card
    assert "2 ranks: fails, 1 rank: ok" in card
    assert "needs more than 1 rank" in isolate_cell.plain(said)


def test_a_cell_names_the_job():
    """The last line of a cell that starts a launcher, not one that only looks like it."""
    cells = [
        "!torchrun --nproc-per-node 2 old.py",
        "x = 1\n!torchrun --nproc-per-node 4 't t.py' 2>&1 | tail  # mine",
        "!ls torchrun",
    ]
    assert ["torchrun", "--nproc-per-node", "4", "t t.py"] == isolate_cell.last_command(cells)
    assert [] == isolate_cell.last_command(["torchrun = 1", "!pip list"])
    names = {"sys": sys, "n": 2, "f": print}
    cell = ["!{sys.executable} -m torch.distributed.run --nproc-per-node $n t.py {f} {n.real}"]
    assert [sys.executable, "2", "{f}", "{n.real}"] == [isolate_cell.last_command(cell, names)[i] for i in (0, 4, 6, 7)]


def test_it_is_proposed_where_a_watched_run_has_not_told_the_cause():
    """After the ranks were seen, and neither after its own runs nor for several hosts."""
    knowledge = load()
    symptoms = {"D.1.other": 0.6, "D.1.7": 0.3}
    seen = Snapshot(ranks=(RankState(rank=0),), verdict=Verdict(kind="dead"))
    multiple = Finding(evidence="nodes", values=("multiple",), source="answered")

    def proposed(snapshot, *findings):
        step = next_step(knowledge, snapshot, (symptoms, findings), None, None)
        return step is not None and step.command.startswith("dtdebug isolate")

    assert proposed(seen)
    told = Finding(evidence="works_with_one_process", values=("yes",), source="answered")
    step = next_step(knowledge, seen, (symptoms, (told,)), None, None)
    assert step.command.startswith("dtdebug isolate --answer works_with_one_process=yes -- torchrun")
    assert not proposed(Snapshot())  # a watched run comes first
    assert not proposed(seen, multiple)
    assert not proposed(msgspec.structs.replace(seen, contrasts={"reproducible": ("always", "3 runs")}))


# --- the copy of the working directory


def test_the_copy_has_small_files_and_links_to_large_ones(tmp_path, monkeypatch):
    """What is large is linked, and so is a virtual environment; a folder too large to be copied is refused."""
    home, target = tmp_path / "home", tmp_path / "copy"
    (home / "venv").mkdir(parents=True)
    (home / "venv" / "pyvenv.cfg").touch()
    (home / "a.py").write_text("pass")
    monkeypatch.setattr(workspace, "_LARGE", 100)
    (home / "big").write_bytes(b"x" * 200)
    workspace.copy(home, target)
    assert (target / "big").is_symlink()
    assert (target / "venv").is_symlink()
    (target / "a.py").write_text("changed")
    assert "pass" == (home / "a.py").read_text()
    monkeypatch.setattr(workspace, "_MOST_FILES", 2)
    with pytest.raises(UsageError, match="--in-place"):
        workspace.copy(home, tmp_path / "second")


# --- real jobs

PLAIN = """
import os
open("last.pt", "w").write("mine")
if os.environ.get("TORCH_PLANTED"):
    raise RuntimeError("planted by the environment")
"""


def isolate(tmp_path, *words, **variables):
    environment = os.environ | {"DTDEBUG_STATE": str(tmp_path / "state"), "OMP_NUM_THREADS": "1"} | variables
    environment.pop("DTDEBUG_RUN", None)
    command = [sys.executable, "-m", "dtdebug", "isolate", *words]
    return subprocess.Popen(
        command, cwd=tmp_path / "home", env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        stdin=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip


def ended(process):
    try:
        out, err = process.communicate(timeout=LIMIT)
    finally:
        process.kill()
    return process.returncode, out, err


def left_behind(tmp_path):
    """Processes of runs that still live."""
    left = []
    for other in psutil.process_iter():
        try:
            ours = other.environ().get("DTDEBUG_ISOLATE", "").startswith(str(tmp_path / "state"))
            left += [other.pid] if ours and other.status() != psutil.STATUS_ZOMBIE else []
        except psutil.Error:
            continue
    return left


@pytest.fixture
def home(tmp_path):
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / "last.pt").write_text("an old checkpoint")
    return folder


def test_a_variable_of_the_environment_is_found_and_no_file_is_touched(tmp_path, home):
    """A plain program that fails because of a variable: it is named, and the checkpoint is as it was."""
    (home / "train.py").write_text(PLAIN)
    status, out, err = ended(isolate(tmp_path, "--format", "json", "--", sys.executable, "train.py", TORCH_PLANTED="1"))
    assert 1 == status, err
    said = json.loads(out)
    assert ["environment.TORCH_PLANTED"] == [r["factor"] for r in said["responsible"]]
    assert ("RuntimeError", "train.py", 5) == (
        said["failure"]["type"],
        said["failure"]["file"],
        said["failure"]["line"],
    )
    assert all(run["outcome"] in ("same", "ok") and not run["unproven"] for run in said["runs"])
    assert "an old checkpoint" == (home / "last.pt").read_text()
    assert {"train.py", "last.pt"} == {path.name for path in home.iterdir()}
    assert [] == left_behind(tmp_path)


def test_a_file_outside_of_the_folder_is_not_overwritten(tmp_path, home):
    """A program that writes over what was there elsewhere is stopped, and the user is told which file it is."""
    precious = tmp_path / "precious.txt"
    precious.write_text("old")
    os.utime(precious, (1, 1))
    (home / "train.py").write_text(f"open({str(precious)!r}, 'w').write('new')\n")
    status, _, err = ended(isolate(tmp_path, "--", sys.executable, "train.py"))
    assert 2 == status
    assert f"writes to {precious}" in err
    assert "old" == precious.read_text()
    status, _, err = ended(isolate(tmp_path, "--may-write", str(precious), "--", sys.executable, "train.py"))
    assert (0, "new") == (status, precious.read_text()), err


def test_an_interrupt_keeps_what_was_found_and_leaves_nothing_behind(tmp_path, home):
    """After Ctrl-C in the second run the first is in the answer, no process is left, and --resume goes on."""
    (home / "train.py").write_text(
        "import os, subprocess, time\n"
        "subprocess.Popen(['sleep', '300'], start_new_session=True)\n"
        "if not os.environ.get('TORCH_PLANTED'):\n    time.sleep(300)\nraise OSError('x')\n"
    )
    words = ["--", sys.executable, "train.py"]
    process = isolate(tmp_path, "--format", "json", *words, TORCH_PLANTED="1")
    for line in process.stderr:  # the first run has ended
        if "run 1" in line:
            break
    process.send_signal(signal.SIGINT)
    status, out, _ = ended(process)
    assert 130 == status
    said = json.loads(out)
    assert ("interrupted", "OSError") == (said["unfinished"], said["failure"]["type"])
    assert [] == left_behind(tmp_path)
    assert [] == list((tmp_path / "state").rglob("work"))
    (home / "train.py").write_text("raise OSError('x')\n")
    status, out, _ = ended(
        isolate(tmp_path, "--resume", "--budget", "1s", "--format", "json", *words, TORCH_PLANTED="1")
    )
    assert 1 == status
    assert said["runs"][0] == json.loads(out)["runs"][0]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "name the job"),
        (("--", "no-such-command"), "command not found"),
        (("--budget", "soon", "--", "true"), "a time such as"),
        (("--resume", "--", "true"), "no earlier search of this command"),
        (("--answer", "compile=maybe", "--", "true"), "one of works, fails"),
        (("--slow", "--hang", "--", "true"), "name one"),
        (("--slow-above", "0", "--", "true"), "must be more than 0 seconds a step"),
        (("--differs", ".", "--", "true"), "no recording"),
        (("--version", "numpy>1", "--", "true"), "one version of it"),
        (("--answer", "works_on_one_node=yes", "--", "torchrun", "--nnodes", "2", "t.py"), "between the hosts"),
    ],
)
def test_bad_input_is_one_line(tmp_path, home, monkeypatch, capsys, words, said):
    """What can't be run is refused with one line and exit status 2, before anything is kept."""
    monkeypatch.chdir(home)
    monkeypatch.setenv("DTDEBUG_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("PATH", os.environ["PATH"] + os.pathsep + str(Path(sys.executable).parent))
    assert 2 == main(["isolate", *words])
    err = capsys.readouterr().err
    assert (1, True) == (err.count("\n"), said in err), err
    assert not (tmp_path / "state" / "isolate").exists()


def test_a_dry_run_starts_nothing_and_a_program_that_asks_is_refused(tmp_path, home, monkeypatch, capsys):
    """The runs are listed, in the words of what is followed; a run has no input."""
    monkeypatch.chdir(home)
    monkeypatch.setenv("DTDEBUG_STATE", str(tmp_path / "state"))
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "4"]
    assert 0 == main(["isolate", "--dry-run", "--slow", "--version", "a==1", "--", *launcher, "--nnodes", "2", "t.py"])
    out = capsys.readouterr().out
    for said in ("if it is not slow", "under one agent of torchrun, not under 2", "with fewer ranks: 1 first", "a 1"):
        assert said in out
    assert not (tmp_path / "state" / "isolate").exists()
    status, _, err = ended(isolate(tmp_path, "--", sys.executable, "-c", "import getpass; getpass.getpass()"))
    assert (2, 1, True) == (status, err.count("\n"), "reads standard input" in err), err


@pytest.mark.parametrize(("name", "least", "said"), [("MEMORY", 2.0, "memory of"), ("DISK", 1 << 62, "disk of")])
def test_a_run_that_uses_up_memory_or_disk_is_ended(tmp_path, home, monkeypatch, capsys, name, least, said):
    """The search stops and says which; nothing of the run is left."""
    monkeypatch.chdir(home)
    monkeypatch.setenv("DTDEBUG_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(memory_limits, name, least)
    assert 2 == main(["isolate", "--yes", "--", sys.executable, "-c", "import time; time.sleep(300)"])
    assert f"a run was ended, for it nearly used up the {said}" in capsys.readouterr().out
    assert not left_behind(tmp_path)


def test_a_budget_too_small_for_one_run_is_said(tmp_path, home):
    """Without time for a run nothing is known, and that is no success."""
    status, out, _ = ended(isolate(tmp_path, "--budget", "1s", "--", sys.executable, "-c", "1/0"))
    assert (2, True) == (status, "the budget is spent: 0 runs" in out)


@pytest.mark.ranks
def test_the_fault_of_a_lab_is_found_with_the_patch_that_mends_it(tmp_path, home):
    """Two real ranks fail at a smaller last batch, and so does one; the measured change is the lab's own solution."""
    before, after = ((labs.LABS / "last-batch-smaller" / name).read_text() for name in ("before.py", "after.py"))
    (home / "train.py").write_text(before)
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    status, out, err = ended(isolate(tmp_path, "--format", "json", "--", *launcher, "train.py"))
    assert 1 == status, err
    said = json.loads(out)
    assert ["last-batch"] == [r["factor"] for r in said["responsible"]], said
    assert said["distributed"] is False
    assert ("RuntimeError", "train.py", 17) == (
        said["failure"]["type"],
        said["failure"]["file"],
        said["failure"]["line"],
    )
    diagnosis = said["diagnosis"]
    assert {"works_with_one_process", "batch_divisible"} <= {k["key"] for k in diagnosis["known"]}
    first = diagnosis["advice"][0]
    assert ("isolated-last-batch", "yours", "likely") == (first["cause"], first["diff_of"], first["band"])
    assert format_patch("train.py", before, after).splitlines() == first["diff"].splitlines()
    assert diagnosis["ruled_out"][0] == "Measured: one rank fails too: distribution is not it."
