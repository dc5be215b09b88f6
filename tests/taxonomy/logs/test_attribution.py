"""The first failure in a printed log: what ended each rank, and what explains nothing."""

import html

import pytest
from msgspec import structs

from dtdebug.presentation import diagnosis_card
from dtdebug.privacy import boundary
from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.logs import event_reader, lines
from dtdebug_taxonomy.logs.split_failures import split_failures
from dtdebug_taxonomy.model.snapshot import Snapshot
from dtdebug_taxonomy.presentation.case_json import Case, contract, of_text
from dtdebug_taxonomy.presentation.text import LATER, to_markdown, to_text
from dtdebug_taxonomy.verdicts import from_log

SITE = "/opt/env/lib/python3.11/site-packages"
LOST = "RuntimeError: [/x/gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:2"
MEANWHILE = "\nDuring handling of the above exception, another exception occurred:\n"
THEREFORE = "\nThe above exception was the direct cause of the following exception:\n"
LOADER = "ValueError: Caught ValueError in DataLoader worker process 0."
TABLE = """\
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  rank      : {rank} (local_rank: {rank})
  exitcode  : {code} (pid: 11)
"""


def trace(last, code="raise Problem(words)", file="/job/train.py", line=7):
    """A traceback of one frame."""
    return f'Traceback (most recent call last):\n  File "{file}", line {line}, in step\n    {code}\n{last}'


def of(text, rank=1):
    """The text as a rank prints it."""
    return "\n".join(f"[rank{rank}]: {row}" for row in text.split("\n"))


def verdict(*parts):
    """The verdict on parts of an output."""
    return from_log.verdict_of_log(Snapshot(output="\n".join(parts)))


def diagnosed(*parts):
    """What `dtdebug diagnose` makes of them."""
    return diagnose(load(), Snapshot(output="\n".join(parts), verdict=verdict(*parts)))


def raised(*parts):
    """The exceptions of an output: class, line of the user's file."""
    return [
        (r.type, r.frames[-1].line if r.frames else 0)
        for r in event_reader.find_events(lines.split_lines("\n".join(parts))).raised
    ]


def test_what_the_launcher_reports_shows_no_rank_going_on():
    """In a log of one rank the launcher's lines look like the rank's own."""
    found = verdict(of(trace("TypeError: string indices must be integers"), 0), of(TABLE.format(rank=0, code=1), 0))

    assert (0,) == found.culprits
    assert "TypeError: string indices must be integers" in found.summary


def test_a_program_that_cannot_be_compiled_says_so_without_a_head():
    """Python prints no head of a traceback then, and any other line that names a file is none."""
    uncompiled = "  File \"/job/train.py\", line 88\n    return f(\n            ^\nSyntaxError: '(' was never closed"

    assert [("SyntaxError", 88)] == raised(uncompiled)
    assert [] == raised('  File "/job/train.py", line 88\nValueError: 3')
    found = verdict(uncompiled, TABLE.format(rank=0, code=1))
    assert "SyntaxError: '(' was never closed at /job/train.py:88" in found.summary


def test_a_warning_does_not_explain_the_exception_that_came_later():
    """NumPy is missing in a warning; what was raised is a variable that nobody set."""
    warning = (
        f"{SITE}/torch/x.py:276: UserWarning: Failed to initialize NumPy: No module named 'numpy' (Triggered here)"
    )
    rendezvous = f"{SITE}/torch/distributed/rendezvous.py"
    last = (
        "ValueError: Error initializing torch.distributed using env:// rendezvous: environment variable RANK expected"
    )
    d = diagnosed(warning, trace(last, file=rendezvous, code="raise _env_error(env_var)"))

    assert "B.1" == d.symptoms[0].code
    assert not [r for s in d.symptoms for r in s.why if "numpy" in r.words]
    assert d.symptoms[0].why[0].words.startswith("ValueError: Error initializing torch.distributed")


def test_an_import_that_was_done_without_is_no_failure():
    """Training goes on: nothing is recognised."""
    said = ["apex not installed, using torch.optim", "ImportError: No module named 'apex'"]
    d = diagnosed(*said, *(f"step {n} loss 0.{n}" for n in range(5)))

    assert (False, "unknown") == (d.recognised, d.verdict)


def test_a_handled_exception_is_not_what_ended_the_rank():
    """The rank logged it and went on; a later one ended it."""
    steps = [of(f"step {n} loss 0.5") for n in range(3)]
    found = verdict(of(trace("OSError: no cache", line=5)), *steps, of(trace("KeyError: 'label'", line=9)))

    assert (1,) == found.culprits
    assert "KeyError: 'label' at /job/train.py:9" in found.summary
    assert "OSError" not in found.summary


RECEIVES = '  File "/job/train.py", line 9, in step\n    conn.recv()\n'
GONE = of(
    trace("EOFError", "raise EOFError", file="/usr/lib/python3.11/multiprocessing/connection.py").replace(
        "last):\n", f"last):\n{RECEIVES}"
    )
)
HEAD = "Process ForkProcess-1:\n"


def test_what_a_child_process_raised_is_the_cause_of_its_parents_lost_connection():
    """The child's traceback has no prefix; where two differ, which of them it was is not said."""
    child = HEAD + trace("KeyError: 'height'", file="/job/reader.py", line=11)
    found = verdict(child, GONE, of(trace(LOST), 0))

    assert ("dead", (1,), (0,)) == (found.kind, found.culprits, found.waiting)
    assert found.summary.startswith("Rank 1 raised KeyError: 'height' (in its process ForkProcess-1) at /job/reader.py")
    assert (found.sites[0].file, found.claims[0].record.line) == ("/job/reader.py", 5)
    other = HEAD + trace("IndexError", file="/job/other.py")
    assert "raised EOFError" in verdict(child, other, GONE, of(trace(LOST), 0)).summary


def test_what_python_ignores_of_a_lost_child_explains_no_childs_exception():
    """A loader's workers are cleared away while the process that had them ends by its own exception."""
    ignored = "Exception ignored in: <function _MultiProcessingDataLoaderIter.__del__ at 0x7f>\n" + trace(
        "RuntimeError: DataLoader worker (pid 9) is killed by signal: Aborted. ", file=f"{SITE}/torch/utils/data/x.py"
    )
    child = "Process Process-1:\n" + trace("RuntimeError: Tensors must have same number of dimensions: got 2 and 3")

    assert (0,) == verdict(of(ignored, 0), of(child, 0)).culprits
    assert "Tensors must have same number of dimensions" in verdict(of(ignored, 0), of(child, 0)).summary


def test_code_that_a_library_made_of_a_text_is_not_the_programs_line():
    """A proxy's method is in `<string>`; that of `python -c` is all there is."""
    made = '  File "<string>", line 2, in __setitem__\n'
    text = trace("ConnectionResetError: reset").replace(
        "    raise Problem(words)\n", f"    raise Problem(words)\n{made}"
    )
    assert " at /job/train.py:7 in step" in verdict(of(text), of(trace(LOST), 0)).summary
    assert " at <string>:7 in step" in verdict(of(trace("KeyError: 1", file="<string>")), of(trace(LOST), 0)).summary
    sent = trace("IndexError: list index out of range", file="/job/run.py").replace(
        "    raise Problem(words)\n", '    raise Problem(words)\n  File "<dynamic-code>", line 9, in train\n'
    )
    assert " at <dynamic-code>:9 in train" in verdict(of(sent), of(trace(LOST), 0)).summary


def test_an_own_exception_before_a_lost_peer_is_the_first_failure_where_nothing_else_is():
    """It was printed by the program, which then lost its peers at the next call; Python links the two by nothing."""
    own = of(trace("ValueError: bad label", line=5))
    lost = trace(LOST, file=f"{SITE}/torch/distributed/distributed_c10d.py", code="work.wait()")
    first = verdict(own, of(lost), of(lost, 0), TABLE.format(rank=0, code=1))
    later = verdict(own, of(trace("KeyError: 'label'", line=9), 0), of(lost))
    killed = verdict(own, of(lost), TABLE.format(rank=0, code=-9))

    assert ((1,), "ValueError: bad label") == (first.culprits, first.claims[0].words)
    assert first.confidence < later.confidence
    assert ((0,), "KeyError: 'label'") == (later.culprits, later.claims[0].words)
    assert ((0,), "was ended by SIGKILL") == (killed.culprits, killed.claims[0].words)


def test_a_rank_that_a_signal_ended_before_the_launcher_sent_any_is_the_first():
    """SIGTERM from outside to one rank; the others lived until the launcher ended them."""
    sent = [f"W1 torch/distributed/elastic/x.py:1] Sending process {pid} closing signal SIGTERM" for pid in (10, 12)]
    row = "  rank      : {0} (local_rank: {0})\n  exitcode  : -15 (pid: {1})  (SIGTERM)"
    table = [row.format(rank, pid) for rank, pid in ((0, 10), (2, 12), (1, 11))]

    assert ((1,), "was ended by SIGTERM") == ((v := verdict(*sent, *table)).culprits, v.claims[0].words)
    assert verdict(*table) is None


def test_the_place_of_an_exception_is_shown_where_nobody_names_its_rank():
    """A logger prints no rank; those that fail later may be it."""
    lost = trace(LOST, file=f"{SITE}/torch/distributed/distributed_c10d.py", code="work.wait()")
    found = verdict(trace("ValueError: bad label", line=5), *(of(lost, rank) for rank in range(2)))

    assert ((), ()) == (found.culprits, found.waiting)
    assert "which one is not printed" in found.summary
    assert 5 == contract(Case(verdict=found))["verdict"]["where"]["line"]


def test_a_handled_exception_without_any_failure_is_none():
    """The job goes on."""
    assert verdict(of(trace("OSError: no cache")), *(of(f"step {n} loss 0.5") for n in range(3))) is None


def test_what_python_ignores_is_no_failure():
    """`Exception ignored in` is printed by a program that goes on."""
    text = "Exception ignored in: <function F.__del__ at 0x7f>\n" + trace(
        "AttributeError: 'F' object has no attribute 'h'"
    )

    assert verdict(text, of(trace("KeyError: 'a'"))).claims[0].words == "KeyError: 'a'"


@pytest.mark.parametrize(
    ("parts", "word"),
    [
        ([of(trace("KeyError: 'a'", line=3)), of(MEANWHILE),
          of(trace(LOST, file=f"{SITE}/torch/distributed/distributed_c10d.py", code="work.wait()"))], "KeyError: 'a'"),
        ([of(trace("KeyError: 'a'")), of(THEREFORE),
          of(trace("ValueError: bad config", line=8))], "ValueError: bad config"),
        ([of(trace("KeyError: 'a'")), of(THEREFORE),
          of(trace("hydra.errors.InstantiationException: Error in call", file=f"{SITE}/hydra/x.py"))], "KeyError: 'a'"),
        ([of(trace(LOADER, file=f"{SITE}/torch/_utils.py")),
          of("Original " + trace("ValueError: no file")), of("")], "ValueError: no file"),
    ],
)  # fmt: skip
def test_of_a_chain_the_programs_own_exception_is_named(parts, word):
    """A lost peer while cleaning up, and a framework's wrapper, hide it."""
    assert word == verdict(*parts).claims[0].words


@pytest.mark.parametrize("code", ["ValueError: bad", "mylib.Unhappy: bad", "SystemError", "Stop: bad"])
def test_every_class_ends_a_traceback(code):
    """Whatever it is called."""
    assert [(code.split(":")[0], 7)] == raised(trace(code))


def test_other_forms_of_tracebacks_are_read():
    """Of rich, of notebooks, of groups, of threads, of faulthandler."""
    rich = (
        "╭──────── Traceback (most recent call last) ────────╮\n│ /job/train.py:12 in main                          │\n"
        "│ 11 │ x │\n│ ❱ 12 │   raise ValueError('bad')                   │\n"
        "╰───────────────────────────────────────────────────╯\nValueError: bad"
    )
    notebook = (
        "---------------------------------------------------------------------------\n"
        "ValueError                                Traceback (most recent call last)\nCell In[3], line 5\n"
        "      4 def f():\n----> 5     raise ValueError('bad')\n\nValueError: bad"
    )
    group = (
        '  + Exception Group Traceback (most recent call last):\n  |   File "/job/a.py", line 3, in <module>\n'
        "  |     run()\n  | ExceptionGroup: errors (1 sub-exception)\n  +-+---------------- 1 ----------------\n"
        '    | Traceback (most recent call last):\n    |   File "/job/a.py", line 9, in work\n'
        "    |     raise ValueError('bad')\n    | ValueError: bad\n    +------------------------------------"
    )
    fault = (
        "Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007f (most recent call first):\n"
        '  File "/job/a.py", line 4 in inner\n  File "/job/a.py", line 9 in <module>\n'
    )

    assert [("ValueError", 12)] == raised(rich)
    assert [("ValueError", 5)] == raised(notebook)
    assert ("ValueError", 9) in raised(group)
    assert [("Fatal Python error: Segmentation fault", 4)] == raised(fault)


def test_a_rank_that_left_without_a_word_is_named_by_its_status():
    """`os._exit` and `sys.exit` print no traceback; the launcher's table has the code."""
    found = verdict(
        of(trace(LOST, code="work.wait()", file=f"{SITE}/torch/distributed/c.py"), 0), TABLE.format(rank=1, code=3)
    )

    assert ("dead", (1,), (0,)) == (found.kind, found.culprits, found.waiting)
    assert "exit code 3" in found.claims[0].text
    assert 0 < found.claims[0].record.line


def test_an_exception_without_a_rank_gets_the_one_that_its_status_explains():
    """Hydra prints it itself; the table tells which rank ended so."""
    assert (1,) == verdict(trace("KeyError: 'a'"), TABLE.format(rank=1, code=1)).culprits
    assert () == verdict(trace("KeyError: 'a'"), TABLE.format(rank=1, code=1) + TABLE.format(rank=0, code=1)).culprits


def test_a_program_of_one_process_gets_no_verdict():
    """Its errors are not ours to explain."""
    assert verdict(trace("KeyError: 'a'")) is None


def test_all_that_raise_the_same_are_named_together():
    """The first of different errors is the cause; another is offered beside it."""
    same = verdict(*(of(trace("KeyError: 'a'"), rank) for rank in (2, 0, 1)))
    other = verdict(of(trace("KeyError: 'a'"), 2), of(trace("EOFError", line=30), 0))

    assert (0, 1, 2) == same.culprits
    assert ((2,), (0,)) == (other.culprits, other.waiting)
    assert [(0,)] == [a.culprits for a in other.alternatives]


def test_a_rank_that_fails_after_more_training_is_no_consequence():
    """As in a log to which the next run was appended: nothing connects the two but their order."""
    output = (of(trace("KeyError: 'a'")), "[rank0]: step 7 loss 2.1", of(trace("TypeError: b"), 0))
    found = verdict(*output)

    assert ((1,), ()) == (found.culprits, found.waiting)
    assert found.summary.endswith("later, after more training, rank 0 raised TypeError: b (line 9).")
    assert "rank 0 failed because of it" in verdict(output[0], output[2]).summary


def test_a_traceback_that_a_checkpoint_repeats_of_another_rank_is_of_that_rank():
    repeated = trace("OSError: full").replace("last):", "last): (RANK 3)")
    named = "torch.distributed.checkpoint.api.CheckpointException: CheckpointException ranks:dict_keys([3])"
    found = verdict(of(f"{trace(named, file=f'{SITE}/torch/distributed/checkpoint/utils.py')}\n{repeated}", 0))

    assert ((3,), "OSError") == (found.culprits, found.claims[0].words.partition(":")[0])


def test_only_the_last_attempt_counts():
    """torchrun starts all ranks anew after a failure."""
    again = "[default] Worker group FAILED. 1/1 attempts left; will restart worker group"
    found = verdict(of(trace("KeyError: 'a'"), 1), again, of(trace("IndexError: b", line=9), 0))

    assert (0,) == found.culprits


AGAIN = "[default] Worker group FAILED. 1/1 attempts left; will restart worker group"
MISSING = "ModuleNotFoundError: No module named 'apex'"


@pytest.mark.parametrize(
    ("parts", "ends"),
    [
        ((of(trace("KeyError: 'a'")), AGAIN, of(trace("EOFError", line=9), 0)), [4, 9]),
        ((of(trace("KeyError: 'a'")), AGAIN, of(trace("KeyError: 'a'"))), [9]),
        ((of(trace("KeyError: 'a'")), of(trace("EOFError", line=9), 0)), [4]),
        ((of(trace("KeyError: 'a'")), "[rank0]: step 7 loss 2.1", of(trace("TypeError: b", line=9), 0)), [4, 9]),
        ((trace("KeyError: 'a'"), "step 7 loss 2.1", of(trace("TypeError: b", line=9), 0)), [9]),
        (
            (trace("KeyError: 'a'"), TABLE.format(rank=1, code=1), "step 7 loss 2.1", of(trace(MISSING, line=9))),
            [4, 18],
        ),
        (
            (
                trace("KeyError: 'a'"),
                trace(TABLE.format(rank=1, code=1), file=f"{SITE}/torch/distributed/run.py"),
                "step 7 loss 2.1",
                trace(MISSING, line=9),
                trace(TABLE.format(rank=0, code=1), file=f"{SITE}/torch/distributed/run.py"),
            ),
            [4, 21],
        ),
    ],
    ids=[
        "another attempt",
        "the same again",
        "no training between",
        "a rank went on",
        "handled",
        "a table of ends",
        "appended",
    ],
)
def test_failures_that_nothing_connects_are_cases_of_their_own(parts, ends):
    """The first first; an attempt that fails as the one before, and what may be a consequence, stay part of it."""
    whole = Snapshot(output="\n".join(parts))
    found = [from_log.verdict_of_log(part) for part in split_failures(whole)]

    assert ends == [v.claims[0].record.line for v in found]
    assert whole.output == "\n".join(part.output for part in split_failures(whole))


def test_a_second_failure_has_its_own_cause_in_all_forms():
    """Text, Markdown, HTML, the card and the form for programs; secrets in it are masked too."""
    oom = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    secret = "ghp_" + "a1B2" * 9
    output = "\n".join((of(trace(oom)), AGAIN, of(trace(f"{MISSING} {secret}", line=9), 0)))
    first, other = (
        structs.replace(s, verdict=from_log.verdict_of_log(s)) for s in split_failures(Snapshot(output=output))
    )
    snapshot = structs.replace(first, later=(other,))
    found = boundary.diagnose(load(), snapshot)
    made = contract(of_text(boundary.mask_snapshot(snapshot), found))

    assert "OutOfMemory" in found.happened
    assert (0,) == made["cases"][0]["verdict"]["culprits"]
    assert "No module named 'apex'" in made["cases"][0]["verdict"]["summary"]
    assert made["cases"][0]["advice"][0]["cause"] != made["advice"][0]["cause"]
    for shown in (to_text(found), to_markdown(found, boundary.mask_snapshot(snapshot)), diagnosis_card.to_html(found)):
        assert made["cases"][0]["advice"][0]["title"] in html.unescape(shown)
        assert LATER in shown
    assert "apex" in diagnosis_card.small(found)["later"][0]["happened"]
    assert secret not in str(made) + to_markdown(found, boundary.mask_snapshot(snapshot)) + str(
        diagnosis_card.small(found)
    )


def test_ranks_that_only_lost_another_are_named_with_their_places_and_nobody_is_accused():
    """Where all stand at one place it is said once; whoever was running when the launcher ended it is no culprit."""
    late = "RuntimeError: [/x/gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 15000ms for recv operation"
    one = of(trace(late, code="dist.all_reduce(x)"), rank=0)
    found = verdict(one, TABLE.format(rank=0, code="1"))

    assert ("not_understood", (), (0,)) == (found.kind, found.culprits, found.waiting)
    assert found.summary == (
        "Rank 0 timed out waiting for another rank at /job/train.py:7 in step; the log does not show why."
    )
    apart = verdict(one, of(trace(LOST, code="dist.barrier()", line=9), rank=2))
    assert "lost the connection to another rank, each at its own place (rank 0 at " in apart.summary
    assert diagnosed(one).happened == verdict(one).summary


def test_a_comparison_with_nothing_is_a_failed_exchange():
    """DDP reads 0 parameters of another rank where the numbers never came; any other number is a real difference."""
    differs = "RuntimeError: DDP expects same model across all ranks, but Rank 1 has 51 params, while rank 0 has "
    code = "return dist._verify_params_across_processes(process_group, tensors, logger)"
    nothing, real = (
        verdict(of(trace(f"{differs}inconsistent {n} params.", code, f"{SITE}/torch/distributed/utils.py")))
        for n in (0, 8)
    )

    assert ("not_understood", ()) == (nothing.kind, nothing.culprits)
    assert ("dead", (1,)) == (real.kind, real.culprits)


# -- Ray and its like: workers, their drivers and controllers ------------------------------------------

LISTED = """\
(TrainController pid=11) Started training worker group of size 2:
(TrainController pid=11) - (ip=10.0.0.1, pid=21) world_rank=0, local_rank=0, node_rank=0
(TrainController pid=11) - (ip=10.0.0.1, pid=22) world_rank=1, local_rank=1, node_rank=0"""
NOT_READY = "ray.exceptions.GetTimeoutError: Get timed out: some object(s) not ready."


def actor(text, name="TrainController", pid=11):
    """The text as Ray shows what one of its processes has printed."""
    return "\n".join(f"\x1b[36m({name} pid={pid})\x1b[0m {row}" for row in text.split("\n"))


def remote(call, pid, last, file="/job/train.py", line=7):
    """How Ray shows at the caller what a process of its has raised there: without a head."""
    name = last.partition(":")[0]
    called = f"ray.exceptions.RayTaskError({name}): \x1b[36mray::{call}()\x1b[39m (pid={pid}, ip=10.0.0.1)"
    return f'{called}\n  File "{file}", line {line}, in step\n    step()\n{last}'


HANDLED = (
    actor(f"Asking for resources failed.\n{trace(NOT_READY, 'check(status)', f'{SITE}/ray/worker.py', 3009)}"),
    actor("Attempting to start training worker group of size 2"),
)
GROUP_FAILED = trace(
    "ray.train.WorkerGroupError: Training failed due to worker errors:", "raise result.error", f"{SITE}/ray/x.py"
)


def test_what_a_controller_logged_and_went_on_after_is_not_the_first_failure():
    failed = actor(trace("ValueError: shard 7 is truncated", "decode(shard)"), "RayTrainWorker", 22)
    said = actor("[FailurePolicy] RAISE")
    found = verdict(*HANDLED, LISTED, failed, said, GROUP_FAILED)

    assert (1,) == found.culprits
    assert "ValueError: shard 7 is truncated at /job/train.py:7 in step" in found.summary
    assert "GetTimeoutError" not in " ".join((found.summary, *found.evidence))


def test_what_a_controller_raises_last_is_its_own_and_no_ranks():
    last = actor(trace("KeyError: 'policy'", "policy()", f"{SITE}/ray/train/controller.py", 12))
    found = verdict(LISTED, last, GROUP_FAILED)

    assert () == found.culprits
    assert found.summary.startswith("TrainController (pid 11) raised KeyError: 'policy'")


def test_what_a_remote_worker_raised_is_told_with_its_rank_and_line():
    """The driver shows it again; nothing that the worker printed itself need be there."""
    call = trace(remote("_RayTrainWorker__execute.get_next", 22, "IndexError: no such sample"), "ray.get(refs)")
    found = verdict(*HANDLED, LISTED, call)

    assert (1,) == found.culprits
    assert found.summary == "Rank 1 raised IndexError: no such sample at /job/train.py:7 in step."


@pytest.mark.parametrize("kind", ["RayTaskError(KeyError)", "ActorDiedError", "RayActorError"])
def test_a_worker_without_a_rank_is_named_by_what_was_called_of_it(kind):
    shown = remote("Worker.train", 31, "KeyError: 3").replace("RayTaskError(KeyError)", kind)
    found = diagnosed("Started a local Ray instance.", trace(shown, "print(ray.get(refs))", line=20))

    assert found.happened == "Worker.train (pid 31) raised KeyError: 3 at /job/train.py:7 in step"


def test_a_handled_exception_of_the_one_who_drives_workers_yields_to_theirs():
    shown = trace(remote("WorkerDict.update", 32, "TypeError: pop expected at least 1 argument"), "ray.get(runner)")
    handled = actor(trace("ZeroDivisionError: division by zero", "return 1 / n", line=90), "TaskRunner", 30)
    found = diagnosed(shown, handled, actor("rewards are there", "TaskRunner", 30))

    assert found.happened.startswith("WorkerDict.update (pid 32) raised TypeError: pop expected")


def test_a_signal_in_a_worker_is_told_with_its_line_not_as_the_death_that_its_caller_met():
    died = trace("ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.", "ray.get(a)")
    fatal = (
        'Fatal Python error: Segmentation fault\n\nStack (most recent call first):\n  File "/job/t.py", line 9 in go\n'
    )
    found = diagnosed(died, "\tpid: 31", actor(fatal, "Trainer", 31))

    assert found.happened == "Trainer (pid 31) raised Fatal Python error: Segmentation fault at /job/t.py:9 in go."


@pytest.mark.parametrize("folder", ["ray", "datasets", "transformers", "accelerate", "lightning"])
def test_a_programs_folder_may_be_called_as_a_package(folder):
    found = diagnosed(
        of(trace("KeyError: 'text'", "row['text']", f"/home/u/{folder}/coco.py")), TABLE.format(rank=1, code=1)
    )

    assert "no line of the program" not in to_text(found)


def test_a_table_below_a_message_is_no_part_of_it():
    table = (
        "\nTrial go_1 errored after 2 iterations at 21:24:54.\n╭────────╮\n│ Trial go_1 result is invalid │\n╰────────╯"
    )
    found = diagnosed(trace(remote("go.train", 31, "ValueError: 9 is not in list"), "ray.get(future)"), table)

    assert "go_1" not in to_text(found)


LOST_BY_0 = of(trace(LOST, "loss.backward()"), 0)
HEADER = trace("struct.error: unpack requires a buffer of 8 bytes", "return unpack(data)", line=5)


def test_an_exception_that_a_logger_printed_yields_to_one_that_ended_a_rank():
    failed = of(trace("ValueError: all input arrays must have the same shape", "stack(rows)", line=11))
    found = verdict(
        f"ERROR:root:bad header, sample left out\n{HEADER}", failed, LOST_BY_0, TABLE.format(rank=1, code=1)
    )

    assert (1,) == found.culprits
    assert "struct.error" not in found.summary


def test_an_exception_that_a_logger_printed_last_and_raised_again_is_the_ranks_own():
    again = of(HEADER)
    found = verdict(f"ERROR:__main__:training failed\n{HEADER}", again, LOST_BY_0, TABLE.format(rank=1, code=1))

    assert (1,) == found.culprits
    assert "struct.error" in found.summary


def test_an_exception_that_a_logger_printed_is_the_failure_where_there_is_no_other():
    found = verdict(f"ERROR:__main__:training failed\n{HEADER}", LOST_BY_0, TABLE.format(rank=1, code=1))

    assert "struct.error" in found.summary


@pytest.mark.parametrize("number", ["9" * 30, "1" + "0" * 25, "12345678"])
@pytest.mark.parametrize("prefix", ["[rank{}]: ", "rank {} | ", "[worker{}]: ", "global_rank={} - "])
def test_no_part_of_a_number_that_is_too_long_is_a_rank(number, prefix):
    begin = prefix.format(number)
    rows = ["Traceback (most recent call last):", '  File "train.py", line 3, in main', "    f(x)", "ValueError: bad"]

    found = verdict(*(begin + row for row in rows))

    assert found is None or not found.culprits
