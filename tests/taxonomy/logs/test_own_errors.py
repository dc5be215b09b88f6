"""What a rank's own code raised: an error of the program, and not of the distribution."""

import pytest
from msgspec.structs import replace
from places import TESTS

from dtdebug.notebook import front_end_api
from dtdebug.privacy.sanitize import clean
from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.incident import Incident
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.logs.event_reader import last_exception
from dtdebug_taxonomy.logs.lines import rank_of
from dtdebug_taxonomy.logs.prefixes import without_prefixes
from dtdebug_taxonomy.logs.split_failures import split_failures
from dtdebug_taxonomy.model.claims import Claim, Record
from dtdebug_taxonomy.model.ranks import Frame, RankState, Verdict
from dtdebug_taxonomy.model.snapshot import ExceptionInfo, Snapshot, SourceFinding
from dtdebug_taxonomy.presentation.text import to_markdown, to_text

SAMPLES = TESTS / "samples"
OWN = [
    ("other-program-failure", "torch-own-keyerror", "program-fails-by-itself", "KeyError: 'label' in train.py:12"),
    (
        "other-program-failure",
        "torch-spawn-zero-division",
        "program-fails-by-itself",
        "division by zero in evaluate.py:13",
    ),
    ("other-program-failure", "horovod-own-index", "program-fails-by-itself", "out of range in report.py:18"),
    ("attribute-not-found", "torch-own-object", "own-object-without-the-name", "attribute 'average' in train.py:14"),
]
SITE = "/opt/env/lib/python3.11/site-packages"


def sample(folder, name):
    """What a program printed."""
    return Snapshot(output=clean((SAMPLES / folder / f"{name}.txt").read_text()))


def printed(last, *frames, rank=1):
    """The traceback of a rank; a frame is (file, code)."""
    rows = [row for file, code in frames for row in (f'  File "{file}", line 7, in step', f"    {code}")]
    return "\n".join(f"[rank{rank}]: {row}" for row in ("Traceback (most recent call last):", *rows, last))


def words(output):
    """What the program's own code raised, in words."""
    return [
        error.words for error in Incident(Snapshot(output=output)).own_errors if not (error.library or error.inside)
    ]


@pytest.mark.parametrize(("folder", "name", "cause", "said"), OWN, ids=[row[1] for row in OWN])
def test_an_error_of_the_program_is_named_with_rank_and_line(folder, name, cause, said):
    """The other ranks' errors are no more than echoes; text, report and data say the same."""
    d = diagnose(load(), sample(folder, name))

    assert (True, "settled", (1,)) == (d.recognised, d.verdict, d.culprits)
    assert (folder, cause) == (d.symptoms[0].id, d.advice[0].cause)
    assert said in d.advice[0].because[0].words
    assert said in to_text(d)
    assert said.split(" in ")[-1] in to_markdown(d)


@pytest.mark.parametrize("said", ["replica of rank 1 diverged at 0.weight", "weights differ across ranks: w.3"])
def test_a_check_of_the_program_that_finds_ranks_to_differ_is_no_fault_of_its_line(said):
    """What made them differ came before; the message is no advice, and the line not the place of the fix."""
    output = printed(f"RuntimeError: {said}", ("/job/train.py", 'raise RuntimeError(f"{what}")'))
    found = diagnose(load(), Snapshot(output=output))

    assert "own-check-of-the-ranks-raised" in {r.evidence for s in found.symptoms for r in s.why}
    assert "program-fails-by-itself" not in {a.cause for a in found.advice}
    assert [] == [a.title for a in found.advice if said in a.title]


def test_where_the_program_finds_ranks_to_differ_its_source_says_what_lets_them():
    """With the diff of the program's own file; a hint, or a fault of another kind, is no reason."""
    output = printed("RuntimeError: replica of rank 1 diverged", ("/job/train.py", 'raise RuntimeError(f"{what}")'))
    named = SourceFinding(
        file="/job/train.py", line=10, check="DT402", message="The handle is dropped.", words="dist.all_reduce(g)",
        fix="Let it wait", diff="--- a/train.py\n",
    )  # fmt: skip
    others = (replace(named, hint=True), replace(named, check="DT101"))
    found = diagnose(load(), Snapshot(output=output, source_findings=(*others, named))).advice[0]

    assert (found.symptom, found.band, found.diff, found.diff_of) == ("D.2.4", "possible", named.diff, "yours")
    assert [(r.file, r.line) for r in found.because[1:]] == [(named.file, 10)]
    assert not diagnose(load(), Snapshot(output=output, source_findings=others)).advice


def test_a_rank_that_its_program_ended_with_status_0_is_named_with_that_call():
    """The others' closed connections are no cause beside it."""
    record = Record(source="exit", rank=1, words="exit status 0")
    claim = Claim(what="left", ranks=(1,), op="os._exit(0)", record=record, file="train.py", line=18)
    summary = "Rank 1 ended its program by os._exit(0) at train.py:18 in check, with exit status 0."
    verdict = Verdict(kind="left", culprits=(1,), waiting=(0,), summary=summary, claims=(claim,))
    found = diagnose(load(), Snapshot(verdict=verdict)).advice[0]

    assert ("program-fails-by-itself", "The program's own code ends that rank, by os._exit(0)") == (
        found.cause,
        found.title,
    )


def test_the_launchers_exception_in_a_notebook_is_enough():
    """A notebook may keep no output besides it."""
    text = (SAMPLES / "other-program-failure" / "torch-spawn-zero-division.txt").read_text()
    evalue = "\n\n" + text[text.index("-- Process 1") :]
    d = front_end_api.diagnose(
        front_end_api.FailedCell(cell="mp.spawn(work)", ename="ProcessRaisedException", evalue=evalue)
    )["diagnosis"]

    assert "program-fails-by-itself" == d["advice"][0]["cause"]
    assert (1,) == tuple(d["culprits"])


def test_one_process_stays_as_it_is():
    """Without a rank or a launcher nothing is said of its errors."""
    text = printed("ZeroDivisionError: division by zero", ("train.py", "print(1 / 0)")).replace("[rank1]: ", "")
    raised = ExceptionInfo(type="ZeroDivisionError", message="division by zero", frames=(Frame("train.py", 7, "step"),))
    for snapshot in (Snapshot(output=text), Snapshot(exception=raised), Snapshot(exception=raised, output=text)):
        d = diagnose(load(), snapshot)

        assert (False, "unknown") == (d.recognised, d.verdict)


def test_a_library_that_does_no_training_is_called_by_the_program():
    """The user's line counts, not that of the library, and not places inside compiled modules."""
    frames = (("train.py", 'table["label"]'), (f"{SITE}/pandas/core/frame.py", "get_loc(key)"), ("index.pyx", "x"))

    assert ["KeyError: 'label' in train.py:7"] == words(printed("KeyError: 'label'", *frames))


@pytest.mark.parametrize(
    "frames",
    [
        [("train.py", "model(x)"), (f"{SITE}/torch/nn/modules/module.py", "raise AttributeError(name)")],
        [(f"{SITE}/torch/utils/data/dataloader.py", "next(it)")],
        [("/home/user/Megatron-LM/megatron/training/arguments.py", "assert args.seq_length")],
        [],
    ],
)
def test_an_error_out_of_a_framework_is_not_the_programs(frames):
    """A framework's own message, or its place, tells more."""
    assert [] == words(printed("ValueError: no", *frames))


def test_what_a_framework_refuses_is_said_with_the_programs_line():
    """A plain exception from inside a framework, and nothing else: the call is refused; the others' end is its echo."""
    frames = [("/w/train.py", "trainer.fit(model)"), (f"{SITE}/torch/optim/sgd.py", "raise ValueError(message)")]
    d = diagnose(load(), Snapshot(output=printed("ValueError: no such state", *frames)))

    assert "library-refuses-the-call" == d.advice[0].cause
    assert "in train.py:7" in d.advice[0].because[0].words
    assert "peer-ended-first" not in {a.cause for a in d.advice}


def test_other_classes_count_only_where_the_users_line_raises():
    """PyTorch raises RuntimeError for almost all that it knows."""
    assert [] == words(printed("RuntimeError: expected", ("train.py", "y = x @ w")))
    assert ["NotFinite: step 3 in train.py:7"] == words(
        printed("losses.NotFinite: step 3", ("train.py", "raise NotFinite('step 3')"))
    )


@pytest.mark.parametrize(
    ("line", "rank"),
    [
        ("[rank3]: words", 3),
        ("[default3]:words", None),
        ("[rank 3] words", 3),
        ("[3]: words", 3),
        ("[1,3]<stderr>:words", 3),
        ("[3]<stdout>:words", 3),
        ("  3: words", 3),
        ("(RayTrainWorker pid=7, ip=10.0.0.1, rank=3) words", 3),
        ("words", None),
        ("12:30:45 words", None),
        ("[2026-11-22 12:30:45] words", None),
    ],
)
def test_the_rank_that_printed_a_line_is_told_by_its_prefix(line, rank):
    """Those of torch, mpirun, horovodrun, srun and Ray; a clock is none, and a local rank is not the rank."""
    assert (rank, "words") == (rank_of(line), without_prefixes(line).body)


def test_ranks_that_print_at_the_same_time_are_told_apart():
    """The prefix of a line says whose traceback it continues."""
    one = printed("KeyError: 'a'", ("one.py", "d['a']"), rank=1).split("\n")
    two = printed("KeyError: 'b'", ("two.py", "d['b']"), rank=2).split("\n")
    mixed = "\n".join(line for pair in zip(one, two, strict=True) for line in pair)

    assert [(1, "KeyError: 'a' in one.py:7"), (2, "KeyError: 'b' in two.py:7")] == [
        (error.rank, error.words) for error in Incident(Snapshot(output=mixed)).own_errors
    ]


def test_a_source_line_of_another_process_is_no_message():
    """Two processes of one program print the same traceback into one log: a line of it is not what was raised."""
    frame = ['  File "/app/train.py", line 7, in step', "    raise refused(shape)", "    ^^^^^^^^^^^^^^^^^^^^"]
    said = "demo.ShapeError: the shape is [5], not [4]"
    mixed = ["Traceback (most recent call last):", *frame, "demo.ShapeError:     raise refused(shape)", frame[2], said]
    assert said.endswith(last_exception("\n".join(mixed)).message)


def test_a_message_that_names_the_failure_on_the_same_rank_goes_first():
    """What is known of frameworks tells more than where it was raised."""
    text = printed("ValueError: global batch size (64) must be divisible by the number of processes (3)", ("a.py", "x"))
    d = diagnose(load(), Snapshot(output=text))

    assert "C.7" == d.symptoms[0].code
    assert "own-code-raised" not in {r.evidence for s in d.symptoms for r in s.why}


def test_where_ranks_were_compared_only_the_culprits_count():
    """A victim's own error is an echo of a kind."""
    stack = (Frame("train.py", 7, "step", "d['a']"),)
    ranks = tuple(RankState(rank=rank, exception="KeyError: 'a'", stack=stack) for rank in (0, 1))
    snapshot = Snapshot(ranks=ranks, verdict=Verdict(kind="dead", culprits=(1,)))

    assert [1] == [error.rank for error in Incident(snapshot).own_errors]


@pytest.mark.parametrize(("name", "recognised"), [("RANK", True), ("rank", False), ("Rank", False)])
def test_a_column_of_a_table_is_not_the_variable_of_a_launcher(name, recognised):
    """Variables are written in capitals."""
    output = f"---> 3 value = source[\"{name}\"]\nKeyError: '{name}'"
    d = front_end_api.diagnose(front_end_api.FailedCell(cell="x", ename="KeyError", evalue=f"'{name}'", output=output))[
        "diagnosis"
    ]

    assert recognised == d["recognised"]


def test_a_restart_that_finds_old_addresses_is_told_from_a_start_that_fails():
    """Only the order of the lines tells: the launcher has stopped an attempt before."""
    whole = sample("setup-failure", "torch-restart-old-addresses")
    first = Snapshot(output=whole.output[whole.output.index("ERROR failed to connect") :])
    restart, start = diagnose(load(), whole), diagnose(load(), first)

    assert "restart-finds-old-addresses" == restart.advice[0].cause
    assert "elastic-connect-failed-after-stop" == restart.advice[0].because[0].evidence
    assert "B.1" == start.symptoms[0].code
    assert "restart-finds-old-addresses" != start.advice[0].cause
    assert "wrong-network-interface" in [a.cause for a in start.advice]


ECHO = "RuntimeError: [/p/gloo/gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:2"


@pytest.mark.parametrize(
    "text",
    [
        "requests.exceptions.ConnectionError: HTTPConnectionPool(host='metrics', port=80): Max retries exceeded",
        "ConnectionRefusedError: [Errno 111] Connection refused",
        "TimeoutError",
    ],
)
def test_the_exception_is_named_first_and_not_that_one_rank_failed_first(text):
    """Whatever its words are like; what the other rank raised for that is no evidence of a cause."""
    of_library = (f"{SITE}/urllib3/connection.py", "raise NewConnectionError(self, why) from e")
    output = printed(text, ("train.py", "send(loss)"), of_library)
    lost = printed(ECHO, ("train.py", "loss.backward()")).replace("[rank1]: ", "[rank0]: ")
    d = diagnose(load(), Snapshot(output=f"{lost}\n{output}"))

    assert (1,) == d.culprits
    assert "program-fails-by-itself" == d.advice[0].cause
    assert text.split(":")[0].rsplit(".", 1)[-1] in d.advice[0].because[0].words
    assert "peer-ended-first" not in {a.cause for a in d.advice}


def test_what_an_interrupt_printed_is_where_a_program_was_and_no_failure():
    """Ctrl-C in a compiler is no failure of the compiler; the same lines below an error are."""
    lines = ["Traceback (most recent call last):", '  File "/job/a.py", line 6, in main', "    model(x)",
             '  File "/x/site-packages/torch/_dynamo/backends/distributed.py", line 91, in compile_fn']  # fmt: skip
    names = {
        last: {r.evidence for s in diagnose(load(), Snapshot(output="\n".join([*lines, last]))).symptoms for r in s.why}
        for last in ("KeyboardInterrupt", "RuntimeError: no")
    }
    assert "dynamo-ddp-optimizer" in names["RuntimeError: no"]
    assert "dynamo-ddp-optimizer" not in names["KeyboardInterrupt"]


def test_a_step_of_slurm_is_no_training_after_a_failure():
    """That its step was cancelled, and what was killed then, follows from the rank that raised."""
    text = (
        "3: step 10 loss 2.1\n3: step 20 loss 2.0\n3: [rank3]: Traceback (most recent call last):\n"
        '3: [rank3]:   File "/home/u/train.py", line 41, in <module>\n3: [rank3]:     loss.backward()\n'
        "3: [rank3]: ValueError: bad thing\nsrun: error: n1: task 3: Exited with exit code 1\n"
        "srun: Terminating StepId=1.0\n"
        "slurmstepd: error: *** STEP 1.0 ON n0 CANCELLED AT 2025-09-03T21:12:01 ***\n"
        "srun: error: n0: tasks 0-2: Killed\n"
    )
    assert len(split_failures(Snapshot(output=text))) == 1
