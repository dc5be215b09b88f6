"""What many ranks and the verdict on them answer by themselves, and what they make of the diagnosis."""

import msgspec
import pytest

from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.inference.from_snapshot import measure
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.model.claims import LOOP_ENDED, SHARED_RANK, Claim, Record
from dtdebug_taxonomy.model.ranks import (
    Alternative,
    CallSite,
    CollectiveRef,
    Frame,
    Group,
    Operation,
    RankState,
    Verdict,
)
from dtdebug_taxonomy.model.snapshot import Gpu, Snapshot
from dtdebug_taxonomy.model.waiting import Waiting
from dtdebug_taxonomy.presentation.text import to_markdown, to_text

TORCH = "/opt/venv/lib/python3.11/site-packages/torch/"
STEP = (
    Frame("/u/train.py", 9, "main"),
    Frame("/u/train.py", 42, "train"),
    Frame(TORCH + "autograd/graph.py", 5, "backward"),
)
EVAL = (*STEP[:2], Frame("/u/train.py", 60, "evaluate"), Frame(TORCH + "distributed/distributed_c10d.py", 7, "barrier"))
LOAD = (
    *STEP[:2],
    Frame(TORCH + "utils/data/dataloader.py", 5, "_next_data"),
    Frame(TORCH + "utils/data/dataloader.py", 9, "_try_get_data"),
)
OTHERS = (0, 1, 2, 4, 5, 6, 7)


def job(**of_rank):
    """Eight ranks on two hosts that wait in a backward pass; `r3=...` has other fields for rank 3."""
    pending = Operation(op="all_reduce", group="0", seq=41)
    group = Group(name="0", ranks=tuple(range(8)), backend="nccl", enqueued=41, completed=40)
    return tuple(
        msgspec.structs.replace(
            RankState(
                rank=r, world_size=8, local_rank=r % 4, host="ab"[r // 4], pid=100 + r, backend="nccl",
                initialized=True,
                groups=(group,), pending=pending, stack=STEP, step=10, alive=True,
            ),
            **of_rank.get(f"r{r}", {}),
        )
        for r in range(8)
    )  # fmt: skip


def verdict(kind, culprits=(3,), waiting=OTHERS, **more):
    """A verdict on rank 3, for which the others wait."""
    return Verdict(kind=kind, culprits=culprits, waiting=waiting, summary=f"Rank 3: {kind}.", **more)


def known(ranks=(), kind=None, **more):
    """What the signals answer, without the words."""
    v = verdict(kind) if isinstance(kind, str) else kind
    return {key: value for key, (value, _) in measure(Snapshot(ranks=ranks, verdict=v, **more)).items()}


@pytest.mark.parametrize("kind", ["skipped", "extra", "replaced"])
def test_ranks_that_parted_answer_what_would_be_asked(kind):
    """Hang, some ranks, unequal work, code on some ranks only, a step done, two nodes, the backend, what runs."""
    found = known(job(), kind)

    assert {
        "manifestation": "hang",
        "failing_ranks": "some",
        "equal_work_per_rank": "no",
        "rank_conditional_code": "yes",
        "any_step_completed": "yes",
        "nodes": "multiple",
        "backend": "nccl",
        "activity": "training",
        "every_process_reports_rank_zero": "no",
    } == found


def test_the_words_name_the_ranks():
    """A user sees why nothing was asked."""
    words = {key: why for key, (_, why) in measure(Snapshot(ranks=job(), verdict=verdict("skipped"))).items()}

    assert "rank 3 diverged from the others" == words["failing_ranks"]
    assert "ranks 0-2,4-7 waited, no rank has ended" == words["manifestation"]
    assert "rank 0 is in step 10" == words["any_step_completed"]


def test_an_unequal_number_of_batches_is_no_conditional_code():
    """The rank ran out of data: that explains the missing collective."""
    facts = {f"r{r}": {"facts": {"batches": "100" if r != 3 else "98", "dataset length": "800"}} for r in range(8)}
    found = known(job(**facts), "skipped")

    assert "no" == found["equal_work_per_rank"]
    assert "rank_conditional_code" not in found


def test_a_loop_that_came_to_its_end_is_no_conditional_code():
    """The source shows that nothing else ends it: the rank had less to go through."""
    words = f"{LOOP_ENDED} all_reduce"
    compared = Claim(what="compared", ranks=(3,), of=(0,), record=Record(source="dump"), words=words)
    snapshot = Snapshot(ranks=job(), verdict=verdict("skipped", claims=(compared,)))
    found = {key: value for key, (value, _) in measure(snapshot).items()}

    assert "no" == found["equal_work_per_rank"]
    assert "rank_conditional_code" not in found
    assert "uneven-batches" == diagnose(load(), snapshot).advice[0].cause


def test_the_loader_of_an_evaluation_is_not_compared_with_that_of_the_training():
    """Rank 3 evaluates: its other loader has other batches, which says nothing of its work."""
    facts = {f"r{r}": {"facts": {"batches": "100", "dataset length": "800"}} for r in OTHERS}
    facts["r3"] = {"facts": {"batches": "7", "dataset length": "50"}, "stack": EVAL}
    found = known(job(**facts), "skipped")

    assert "yes" == found["rank_conditional_code"]
    assert "evaluating" == found["activity"]


def test_a_fabric_that_stands_still_is_equal_work_of_all():
    """Everybody has arrived: no rank is to blame."""
    found = known(job(), verdict("fabric", culprits=(), waiting=tuple(range(8))))

    assert ("hang", "all", "yes") == (found["manifestation"], found["failing_ranks"], found["equal_work_per_rank"])


def test_a_dead_rank_is_no_hang():
    """One rank ended; what that was is asked or read elsewhere."""
    found = known(job(r3={"alive": False, "exception": "ValueError: bad sample"}), "dead")

    assert "manifestation" not in found
    assert ("one", "yes") == (found["failing_ranks"], found["error_text_on_some_rank"])


def test_a_mismatch_read_from_text_is_no_hang():
    """DETAIL mode ends the ranks with an error; only a barrier's time-out tells of waiting."""
    assert "manifestation" not in known((), "skipped")
    assert "hang" == known((), "not_arrived")["manifestation"]


def test_nothing_is_answered_that_is_not_known():
    """Ranks without record, verdict, or stack answer nothing but their number."""
    assert {} == known((RankState(rank=0), RankState(rank=1)))
    assert {} == known((), verdict("none", culprits=(), waiting=()))


@pytest.mark.parametrize(("version", "expected"), [("2.27.5", "no"), ("2.28.9", "yes")])
def test_versions_are_compared_between_hosts(version, expected):
    """The one with the other version is named."""
    versions = {f"r{r}": {"versions": {"nccl": version if r == 7 else "2.28.9"}} for r in range(8)}
    value, why = measure(Snapshot(ranks=job(**versions)))["versions_match_across_nodes"]

    assert expected == value
    assert ("2.27.5 on rank 7" in why) == (expected == "no")


@pytest.mark.parametrize(
    ("placed", "expected"),
    [((0, 1, 2, 3), "as_expected"), ((0, 0, 0, 0), "all_ranks_on_one"), ((0, 1, 2), None)],
)
def test_devices_are_told_by_the_processes_on_them(placed, expected):
    """Only if every rank was found on some device."""
    ranks = tuple(msgspec.structs.replace(r, host="a") for r in job()[:4])
    held = {g: tuple((100 + i, 1 << 30) for i, at in enumerate(placed) if at == g) for g in range(4)}
    gpus = tuple(Gpu(index=g, processes=pids) for g, pids in held.items())

    assert expected == known(ranks, None, gpus=gpus).get("device_usage")


def test_ranks_that_see_one_device_only_share_it():
    """By their environment, without NVML."""
    ranks = tuple(msgspec.structs.replace(r, environment={"CUDA_VISIBLE_DEVICES": "0"}) for r in job())

    assert "all_ranks_on_one" == known(ranks)["device_usage"]


def test_no_finished_collective_means_no_step():
    """Only if every rank of the run says so."""
    group = Group(name="0", ranks=tuple(range(8)), enqueued=1, completed=0)
    ranks = job(**{f"r{r}": {"step": None, "groups": (group,)} for r in range(8)})

    assert "no" == known(ranks)["any_step_completed"]
    assert "any_step_completed" not in known(ranks[:7])


def test_the_first_collective_that_does_not_finish_means_no_step():
    """On gloo a collective that failed counts as completed."""
    group = Group(name="0", ranks=tuple(range(8)), enqueued=1, completed=1)
    ranks = job(**{f"r{r}": {"step": None, "groups": (group,)} for r in range(8)})
    first = verdict("not_arrived", collective=CollectiveRef("barrier", 1))

    assert "no" == known(ranks, first)["any_step_completed"]
    assert "any_step_completed" not in known(ranks, verdict("not_arrived", collective=CollectiveRef("barrier", 2)))


def test_where_an_ended_rank_stood_tells_what_ran():
    """The others waited while it prepared the data; then the launcher ended it."""
    ranks = job(**{f"r{r}": {"alive": False, "stack": (), "step": None} for r in range(8)})
    stood = verdict("not_arrived", sites=(CallSite(3, "/u/train.py", 9, "tokenize_dataset"),))

    assert "preparing_data" == known(ranks, stood)["activity"]


def test_data_that_is_read_after_a_step_is_not_prepared_before_training():
    ranks = job(**{f"r{r}": {"alive": False, "stack": (), "step": 6} for r in range(8)})
    stood = verdict("not_arrived", sites=(CallSite(3, "/u/train.py", 9, "tokenize"),))

    assert "yes" == known(ranks, stood)["any_step_completed"]
    assert "activity" not in known(ranks, stood)


def test_a_rank_that_is_held_up_is_busy_with_nothing():
    """Whatever its function is called: it reads from a pipe that nobody writes to."""
    stack = (Frame("/u/train.py", 9, "build_index"),)
    pipe = Waiting(kind="pipe", record=Record(source="system"))
    stood = verdict("not_arrived", culprits=(3,), sites=(CallSite(3, "/u/train.py", 9, "build_index"),))

    begun = {f"r{r}": {"step": None} for r in range(8)}
    assert "preparing_data" == known(job(**begun | {"r3": {"stack": stack, "step": None}}), stood)["activity"]
    assert "training" == known(job(r3={"stack": stack, "waiting": pipe}), stood)["activity"]  # as the others
    words = "it waits in a read of pipe:[1] (the rank itself has its other end)"
    mutual = Waiting(kind="subprocess", pid=9, words=words, record=Record(source="system"))
    held = {"stack": stack, "waiting": mutual, "step": None}
    assert "training" == known(job(**begun | {"r3": held}), stood)["activity"]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"stack": LOAD}, "several"),
        ({"facts": {"loader workers": "0"}}, "zero"),
        ({"facts": {"loader workers": "4"}}, "several"),
    ],
)
def test_loader_workers_are_told_by_stack_or_loader(change, expected):
    """A rank that waits for a worker has some."""
    assert expected == known(job(r3=change))["data_loader_workers"]


@pytest.mark.parametrize(
    ("kind", "change", "cause"),
    [
        ("skipped", {"stack": EVAL}, "collective-under-rank-guard"),
        ("replaced", {}, "ranks-take-different-paths"),
        ("not_arrived", {"stack": LOAD, "pending": None}, "loader-fork-deadlock"),
        ("not_arrived", {"stack": EVAL, "pending": None}, "collective-under-rank-guard"),
    ],
)
def test_the_verdict_moves_the_causes_of_a_hang(kind, change, cause):
    """Without a word printed: the symptom is the hang, and the cause that fits the verdict comes first."""
    d = diagnose(load(), Snapshot(ranks=job(r3=change), verdict=verdict(kind)))

    assert ("D.2.1", True, (3,)) == (d.symptoms[0].code, d.recognised, d.culprits)
    assert cause == d.advice[0].cause, [(a.cause, a.probability) for a in d.advice]


def test_uneven_batches_and_a_skipped_collective_mean_uneven_batches():
    """Facts of the loaders tell it from code on some ranks only."""
    facts = {f"r{r}": {"facts": {"batches": "100" if r != 3 else "98", "dataset length": "800"}} for r in range(8)}
    d = diagnose(load(), Snapshot(ranks=job(**facts), verdict=verdict("skipped")))

    assert "uneven-batches" == d.advice[0].cause


def test_a_stalled_fabric_points_below_the_program():
    """Transport or library, not the code of a rank."""
    d = diagnose(load(), Snapshot(ranks=job(), verdict=verdict("fabric", culprits=(), waiting=tuple(range(8)))))

    assert d.symptoms[0].code == "D.2.1"
    assert {d.advice[0].cause, d.advice[1].cause} <= {
        "transport-stalls",
        "wrong-interface",
        "library-deadlock",
        "two-ranks-on-one-device",
        "framework-deadlock",
    }


def test_a_rank_killed_by_the_kernel_is_a_memory_issue():
    """SIGKILL on the rank that the others wait for."""
    dead = {"alive": False, "signal": "SIGKILL", "exit_code": -9, "pending": None}
    d = diagnose(load(), Snapshot(ranks=job(r3=dead), verdict=verdict("dead")))

    assert "D.1.2" == d.symptoms[0].code
    assert "host-memory-limit-too-small" in [a.cause for a in d.advice]


def test_what_the_first_dead_rank_raised_counts():
    """Its exception is read like one of this process, and is the symptom; the others' echoes are not."""
    echo = "RuntimeError: [tcp/pair.cc:534] Connection closed by peer [127.0.0.1]:4711"
    others = {f"r{r}": {"exception": echo} for r in OTHERS}
    oom = {"exception": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", "alive": False}
    d = diagnose(load(), Snapshot(ranks=job(r3=oom, **others), verdict=verdict("dead")))

    assert ("D.1.2", (3,)) == (d.symptoms[0].code, d.culprits)


def test_tensors_that_differ_are_a_communication_error():
    """An error as DETAIL mode raises it; which rank is said."""
    d = diagnose(load(), Snapshot(verdict=verdict("wrong_size")))

    assert ("D.1.1", "ranks-call-different-collectives") == (d.symptoms[0].code, d.advice[0].cause)


def test_a_report_says_the_verdict_first():
    """Which rank, what and where stand before what that may mean; text of other processes can't format it."""
    v = verdict(
        "skipped",
        sites=(CallSite(3, "/u/train.py", 60, "evaluate"), CallSite(0, "/u/<b>train</b>.py", 42, "train")),
        evidence=("rank 3 *finished* 40, the others 41",),
        alternatives=(Alternative(kind="replaced", culprits=(3,), because="it may", refute="a dump"),),
    )
    s = Snapshot(ranks=job(), verdict=v)
    d = diagnose(load(), s)
    report = to_markdown(d, s)

    assert report.index("## Rank 3: skipped.") < report.index("| symptom |")
    assert "- rank 3 (culprit): /u/train.py:60 in evaluate" in report
    assert "<b>" not in report
    assert "rank 3 \\*finished\\* 40" in report
    assert to_text(d).startswith("dtdebug: Rank 3: skipped.\n  seen: rank 3 *finished* 40")
    assert "\n  symptom: Training hangs" in to_text(d)


@pytest.mark.parametrize(
    ("found", "cause"),
    [
        ({"kind": "not_arrived", "collective": CollectiveRef("init_process_group", None)}, "not-all-processes-started"),
        ({"kind": "not_arrived", "claims": (
            Claim(what="system", ranks=(3,), words=f"{SHARED_RANK}: 7, 8", record=Record(source="system")),
        )}, "not-all-processes-started"),
        ({"kind": "dead", "claims": (
            Claim(what="ended", ranks=(3,), op="os._exit(3)", words="ended", record=Record(source="exit")),
        )}, "program-fails-by-itself"),
    ],
)  # fmt: skip
def test_what_a_verdict_shows_besides_its_kind_leads_to_the_cause(found, cause):
    """Of a rank missing when the group is made, or ended by its own line, the kind alone says too little."""
    told = diagnose(load(), Snapshot(verdict=verdict(**found)))

    assert cause == told.advice[0].cause
    assert not {"rank-did-not-come", "rank-ended-first"} & {r.evidence for s in told.symptoms for r in s.why}
