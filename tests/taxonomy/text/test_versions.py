"""Releases that texts name, and what is known of them."""

import json
import re
from functools import partial

import pytest
from places import TESTS

from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.inference import known_releases
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.model.snapshot import Snapshot
from dtdebug_taxonomy.text.pattern_matcher import problem_of


@pytest.mark.parametrize(
    ("release", "bounds", "inside"),
    [
        ("2.26.2", ">=2.19,<2.26.2", False),
        ("2.26.1", ">=2.19,<2.26.2", True),
        ("2.7.0+cu128", "<2.8", True),
        ("0.16.5", "==0.16.5", True),
        ("0.16.10", "<0.16.9", False),
        ("1.0", "", True),
        ("2.26", ">=2.26.0", True),
        ("2.0.0rc1", "<2.0.0", True),
        ("2.0.0rc1", ">=1.13,<2.0", True),
        ("2.0.0rc1", ">=2.0.0", False),
        ("2.3.0.dev20240315", "<2.3.0", True),
        ("2.3.0a0+6ddf5cf85e.nv24.04", "<2.3.0", True),
        ("2.3.0.post1", ">=2.3.0", True),
        ("2.1.0+cu118", "==2.1.0", True),
        ("2.1.0+cu118", "<=2.1.0", True),
        ("2.1.0+cu118", ">2.1.0", False),
        ("2.6.0-nightly", "<2.6.1", True),
        ("0.18.3", "<0.18.10", True),
        ("main", "<1.0", True),
    ],
)
def test_a_release_lies_in_a_range(release, bounds, inside):
    """Nightlies and candidates come before their release; builds do not count; missing parts are 0."""
    assert known_releases.is_in_range(release, bounds) is inside


def test_what_is_no_range_is_refused():
    """A typing error in a file of facts is not taken for "all releases"."""
    with pytest.raises(ValueError, match="not a range"):
        known_releases.is_in_range("1.0", "~=1.0")


@pytest.mark.parametrize(
    ("text", "package", "release"),
    [
        ("NCCL version 2.26.2+cuda12.2", "nccl", "2.26.2"),
        ("- DeepSpeed version: 0.16.5", "deepspeed", "0.16.5"),
        ("deepspeed info ................... 0.16.4, unknown, unknown", "deepspeed", "0.16.4"),
        ("pip install deepspeed==0.15.4", "deepspeed", "0.15.4"),
        ("PyTorch version: 2.6.0+cu118 (GPU)", "torch", "2.6.0"),
        ("nvidia-nccl-cu12          2.21.5", "nccl", "2.21.5"),
        ("I use torch 2.3.0 and Accelerate is 1.2.1", "accelerate", "1.2.1"),
        ("flash_attn==2.8.0.post2", "flash-attn", "2.8.0"),
        ("torch_npu 2.7.1, CANN 9.0.0", "torch-npu", "2.7.1"),
        ("ROCm version: 6.4.1", "rocm", "6.4.1"),
        ("torch 2.3.0.dev20240315+cu121", "torch", "2.3.0.dev20240315"),
        ("PyTorch version: 2.0.0rc1", "torch", "2.0.0rc1"),
        ("PyTorch version: 2.3.0a0+6ddf5cf85e.nv24.04", "torch", "2.3.0a0"),
        ("transformers 4.46.0, accelerate", "transformers", "4.46.0"),
    ],
)
def test_releases_are_read_as_people_and_programs_write_them(text, package, release):
    """Lists of pip, reports of environments, banners, sentences."""
    assert [n.release for n in known_releases.releases_in(Snapshot(output=text))[package]] == [release]


@pytest.mark.parametrize(
    "text", ["requires torch>=2.4.0", "/opt/torch-2.3.1/lib", "torch/csrc 10.4", "torchvision 0.19.0"]
)
def test_a_requirement_a_path_or_another_package_is_no_release(text):
    """They say nothing of what is installed."""
    assert "torch" not in known_releases.releases_in(Snapshot(output=text))


def test_every_fact_is_well_formed():
    """Ranges can be read, patterns run in linear time, symptoms and fix patterns exist, sources are addresses."""
    knowledge = load()
    assert len(knowledge.releases) >= 90
    assert len({f.id for f in knowledge.releases}) == len(knowledge.releases)
    for f in knowledge.releases:
        assert f.package in known_releases.NAMES, f.id
        assert {*f.beside} <= {*known_releases.NAMES}, f.id
        for bounds in (f.range, *f.beside.values()):
            known_releases.is_in_range("1.0", bounds)
        assert f.text or f.says, f.id
        assert [p for p in (*f.text, *f.says, *f.where) if problem_of(p)] == [], f.id
        assert f.symptom in knowledge.symptoms, f.id
        assert f.pattern in knowledge.patterns, f.id
        assert not f.title.endswith("."), f.id
        assert f.why.endswith("."), f.id
        assert f.fix.rstrip()[-1] in ".`)", f.id
        assert re.match("https://", f.cite), f.id


MISSING = "AttributeError: 'Linear' object has no attribute 'ds_grads_remaining'"


@pytest.mark.parametrize(
    ("said", "band"),
    [("DeepSpeed 0.16.5, ZeRO-3, eight GPUs", "likely"), ("DeepSpeed with ZeRO-3, eight GPUs", "possible")],
)
def test_a_release_that_is_named_makes_a_fact_likely(said, band):
    """Without it only the message speaks for the fact, and both are quoted."""
    first = diagnose(load(), Snapshot(situation=said, output=MISSING)).advice[0]

    assert (first.cause, first.band) == ("deepspeed-0.16.5-grads-remaining", band)
    assert first.because[0].words == "object has no attribute 'ds_grads_remaining'"
    assert any("0.16.5" in r.words for r in first.because) == (band == "likely")


def test_another_release_rules_the_fact_out():
    """What is known of 0.16.5 is not said of 0.17."""
    advice = diagnose(load(), Snapshot(situation="DeepSpeed 0.17.2 with ZeRO-3, 8 GPUs", output=MISSING)).advice

    assert "deepspeed-0.16.5-grads-remaining" not in [a.cause for a in advice]


def test_a_measured_release_beats_what_a_text_names():
    """What is installed decides; a text may speak of another machine."""
    snapshot = Snapshot(situation="DeepSpeed 0.16.5 on 8 GPUs", output=MISSING, versions={"deepspeed": "0.16.9"})

    assert "deepspeed-0.16.5-grads-remaining" not in [a.cause for a in diagnose(load(), snapshot).advice]


REPORTS = [json.loads(row) for row in (TESTS / "releases_that_fail.jsonl").read_text().splitlines()]
"""Reports as users write them, each of a fact."""


def _facts(report, text=lambda text: text):
    snapshot = Snapshot(situation=text(report["said"]), output=text(report["printed"]))
    return {row.fact.id for row in known_releases.fitting_releases(load(), snapshot)}


def test_each_report_shows_its_fact():
    """The release is named in the range, and the patterns are met."""
    assert [r["fact"] for r in REPORTS if r["fact"] not in _facts(r)] == []


def test_another_release_shows_no_fact():
    """The same reports with a release that comes after the range, or before it where it has no end."""
    facts = {f.id: f for f in load().releases}

    def moved(fact, text):
        return re.sub(r"(?<![\w.])\d{1,3}(\.\d{1,4}){1,2}", "99.1.0" if "<" in fact.range else "0.0.1", text)

    ranged = [r for r in REPORTS if facts[r["fact"]].range]
    assert [r["fact"] for r in ranged if r["fact"] in _facts(r, partial(moved, facts[r["fact"]]))] == []


def test_both_releases_of_a_change_are_read():
    """A sentence that goes from one to another, whichever of them fails."""
    rows = known_releases.releases_in(Snapshot(situation="I upgraded trl from 0.13.0 to 0.14.0 or 0.15.0"))

    assert [n.release for n in rows["trl"]] == ["0.13.0", "0.14.0", "0.15.0"]


RECENT = [
    ("flash-attn-2.8-old-torch", "torch==2.6.0, flash_attn==2.8.0.post2",
     "ImportError: flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so: undefined symbol: _ZN3c105ErrorC2E"),
    ("deepspeed-old-torch-2.6-resume", "deepspeed 0.15.4 with torch 2.6.0, 8 GPUs",
     ('File "/x/deepspeed/runtime/checkpoint_engine/torch_checkpoint_engine.py", line 28, in load\n'
     "_pickle.UnpicklingError: Weights only load failed.")),
    ("rccl-wants-no-scratch-reclaim", "", "[FATAL ERROR]: Please set HSA_NO_SCRATCH_RECLAIM=1 and rerun."),
    ("nccl-2.27-cumem-host-without-p2p", "",
     "n1:7:8 [0] transport/shm.cc:590 NCCL WARN Cuda failure 217 'peer access is not supported between these two'"),
    ("torch-npu-2.7.1-cann-9", "torch_npu 2.7.1 on 8 NPUs", "ImportError: undefined symbol: MsprofSysCycleTime"),
]  # fmt: skip


@pytest.mark.parametrize(("cause", "said", "printed"), RECENT, ids=[row[0] for row in RECENT])
def test_recent_releases_that_fail_are_the_first_cause(cause, said, printed):
    """What was printed, with the release where it is named; of one process it is told in the one line."""
    fact = next(f for f in load().releases if f.id == cause)
    alone, several = (
        diagnose(load(), Snapshot(situation=said, output=f"{before}{printed}")) for before in ("", "[rank0]: step\n")
    )

    assert fact.title in f"{alone.ordinary}{[a.title for a in alone.advice[:1]]}"
    assert several.advice[0].cause == cause


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("My machine has two RTX 4090 GPUs. torchrun --nproc_per_node=4 train.py crashes at start", "4 processes"),
        ("I have 2 GPUs and run torchrun --nproc_per_node 4 train.py: invalid device ordinal", "that has 2 GPUs"),
        ("2 nodes with 4 GPUs each, torchrun --nproc_per_node=4 train.py hangs", ""),
        ("We have 8 GPUs, deepspeed --num_gpus 8 train.py hangs after the first epoch", ""),
        ("I have 1 GPU, torchrun --nproc_per_node 4 with gloo on the CPU fails", ""),
    ],
)
def test_more_processes_than_gpus_by_what_is_told(said, told):
    """The figures are compared, and the cause quotes the user's words."""
    titles = [a.title for a in diagnose(load(), Snapshot(situation=said)).advice[:1]]

    assert any("are started on a host that has" in title for title in titles) == bool(told)
    assert not told or told in titles[0]


@pytest.mark.parametrize(
    "output",
    [
        "Last State:  Terminated\n  Reason:  OOMKilled\n  Exit Code:  137\nImage:  web:1",
        "ssh: connect to host bastion.example port 22: Connection refused",
        "ssh: connect to host 10.0.0.9 port 22: No route to host",
    ],
)
def test_a_pod_or_a_remote_shell_alone_is_no_launcher(output):
    """One line says what it means, and no story of ranks; beside a launcher's words it is one."""
    alone = diagnose(load(), Snapshot(output=output))

    assert not alone.recognised
    assert alone.ordinary
    assert diagnose(load(), Snapshot(output=f"[rank0]: step 1\n{output}\nmpirun: exit 1")).recognised
