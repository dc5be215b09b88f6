"""What many ranks print in one log: failures that were outlived, silent ranks, long messages, mixed tracebacks."""

import itertools
import random

import pytest

from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.logs import event_reader, lines
from dtdebug_taxonomy.logs.log import read_output
from dtdebug_taxonomy.logs.log_end import has_reached_plan
from dtdebug_taxonomy.logs.message_detail import add_detail
from dtdebug_taxonomy.logs.split_failures import lead_first, split_failures
from dtdebug_taxonomy.model.snapshot import Snapshot
from dtdebug_taxonomy.verdicts.from_log import verdict_of_log

LOST = "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:553] Connection closed by peer [10.1.0.9]:412"
LATE = "RuntimeError: [/x/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 1800000ms for recv operation"
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.91 GiB."
FULL = "OSError: [Errno 28] No space left on device: '/scratch/run7/step250.pt'"


def trace(last, line=7, code="out = self.model(**batch)"):
    return f'Traceback (most recent call last):\n  File "/job/train.py", line {line}, in step\n    {code}\n{last}'


def of(rank, text):
    return "\n".join(f"[rank{rank}]: {row}" for row in text.split("\n"))


def steps(first, last, words="step {} loss 2.1"):
    return "\n".join(words.format(s) for s in range(first, last))


def failed(*parts):
    """The first verdict on an output."""
    return verdict_of_log(lead_first(split_failures(Snapshot(output="\n".join(parts))))[0])


def time_out(rank, seq=7):
    return (
        f"[rank{rank}]:[E1105 12:12:20.1 ProcessGroupNCCL.cpp:632] [Rank {rank}] Watchdog caught collective operation "
        f"timeout: WorkNCCL(SeqNum={seq}, OpType=ALLREDUCE, NumelIn=16, NumelOut=16, Timeout(ms)=600000) ran for "
        "600029 milliseconds before timing out."
    )


# -- failures that were outlived ------------------------------------------------------------------------


def test_steps_without_times_below_an_exception_may_have_been_flushed_late():
    """What a program writes into a pipe comes out at its end, below the exception that ended it."""
    output = f"{trace('ValueError: labels out of range')}\n{steps(0, 40)}\n"
    stamped = "".join(f"10:20:{n:02} {row}\n" for n, row in enumerate(output.splitlines()))

    assert "ValueError: labels out of range" in diagnose(load(), Snapshot(output=output)).happened
    assert not diagnose(load(), Snapshot(output=stamped)).happened


@pytest.mark.parametrize("words", ["step {} loss 2.1", "   {} | train | nll 1.25 | 3.1 s a batch"])
def test_what_was_outlived_by_training_leaves_the_lead_to_the_later_failure(words):
    """Also where a program has its own words for a step."""
    found = failed(steps(0, 9, words), of(3, trace(OOM)), steps(9, 20, words), of(0, trace(FULL, line=9)))

    assert found.culprits == (0,)
    assert "No space left" in found.summary
    assert "memory" not in found.summary


def test_one_step_that_another_rank_still_made_is_no_training():
    found = failed(of(2, trace("KeyError: 'w7'")), of(0, "step 5 loss 2.1"), of(0, trace("TypeError: b", line=9)))

    assert found.culprits == (2,)


def test_the_attempt_that_ended_the_job_leads():
    again = "Worker group FAILED. 1/1 attempts left; will restart worker group"
    found = failed(of(2, trace(OOM)), again, of(0, steps(0, 3)), of(3, trace("KeyError: 'lang'", line=9)))

    assert (found.culprits, "KeyError" in found.summary) == ((3,), True)


def test_an_exception_before_a_restart_is_no_failure_of_a_completed_run():
    again = "Worker group FAILED. 1/1 attempts left; will restart worker group"
    done = of(0, "training completed")

    assert failed(of(2, trace(OOM)), again, of(0, steps(0, 9)), done) is None
    assert failed(of(2, trace(OOM)), again, of(0, steps(0, 9))).culprits == (2,)


def test_a_process_killed_after_more_training_was_not_ended_by_an_exception():
    ends = "worker-1: ['python', '-u', 'train.py', '--local_rank=3'] exits with return code = {}"
    skipped = trace("PIL.UnidentifiedImageError: cannot identify image file '/data/7.webp'")

    assert failed(steps(0, 9), skipped, steps(9, 20), ends.format(-9)) is None
    assert "Unidentified" in failed(steps(0, 9), skipped, steps(9, 20), ends.format(1)).summary


def test_ranks_that_train_on_for_long_show_that_no_rank_had_ended():
    """Its own lines alone count: what another process prints at its end may have been written before."""
    lost = of(0, trace(LOST, code="dist.all_reduce(x)"))
    tried = of(1, trace(OOM))

    assert failed(tried, of(0, steps(0, 9)), lost).waiting == (0,)
    assert failed(tried, lost, of(0, steps(0, 9))).culprits == (1,)
    assert failed(tried, of(2, steps(0, 9)), lost).culprits == (1,)


def test_a_scheduler_that_ends_a_step_after_the_last_one_of_the_plan_tells_of_no_failure():
    end = "srun: Job step aborted: Waiting up to 32 seconds for job step to finish."
    for words, reached in (
        ("step {}/40 loss 2.1", True),
        ("epoch 1 step {}/40 loss 2.1", False),
        ("step {}/90", False),
    ):
        output = "\n".join((steps(1, 41, words), "saved to out/final.pt", end))
        assert reached is has_reached_plan(read_output(Snapshot(output=output)))
        assert reached is not diagnose(load(), Snapshot(output=output)).recognised


# -- the rank that reports nothing ----------------------------------------------------------------------


def test_the_last_line_of_the_rank_without_a_time_out_leads():
    rows = [of(r, f"12:0{s}:03 step {s} loss 1.9") for s in range(3) for r in range(8)]
    saves = of(5, "12:02:09 saving checkpoint step_2 to /mnt/nfs")
    found = failed(*rows, saves, *(time_out(r) for r in range(8) if r != 5))

    assert found.culprits == (5,)
    assert found.summary.startswith(
        'Rank 5 printed no time-out: its last line (12:02:09) is "saving checkpoint step_2 to /mnt/nfs". '
        "Ranks 0-4,6-7 timed out in all_reduce #7"
    )
    assert found.claims[0].record.line == len(rows) + 1
    assert failed(*rows, saves, *map(time_out, range(8))).culprits == ()


@pytest.mark.parametrize(("last", "said"), [(LATE, "printed no time-out"), (LOST, "printed no error")])
def test_ranks_without_watchdogs_are_compared_too(last, said):
    rows = [of(r, f"iter {s} done") for s in range(3) for r in range(4)]
    phase = of(2, "compiling kernel for new shape (1, 3, 517)")
    found = failed(*rows, phase, *(of(r, trace(last, code="dist.all_reduce(x)")) for r in (0, 1, 3)))

    assert (found.culprits, found.waiting) == ((2,), (0, 1, 3))
    assert f'Rank 2 {said}: its last line is "compiling kernel for new shape (1, 3, 517)"' in found.summary


def test_a_rank_that_the_launcher_ended_ran_on_until_then():
    ended = "  rank      : 1 (local_rank: 1)\n  exitcode  : -15 (pid: 11)"
    late = [of(r, trace(LATE, code="dist.all_reduce(x)")) for r in (0, 2)]
    found = failed(of(1, "reading the index"), *late, ended)

    assert found.summary.startswith('Rank 1 ran on and printed no time-out: its last line is "reading the index".')


def test_pods_that_are_numbered_as_their_ranks_give_their_number_to_lines_without_one():
    pod = "[pod/llm-worker-{}/main] {}"
    rows = [pod.format(r, f"step {s} loss 2.1") for s in range(6) for r in range(4)]
    late = [pod.format(r, time_out(r)) for r in range(3)]

    assert failed(*rows, pod.format(3, "fetching shard 31"), *late).culprits == (3,)
    twice = [*late, pod.format(0, time_out(3))]  # pods with several ranks
    assert failed(*rows, pod.format(3, "fetching shard 31"), *twice).culprits == ()


# -- messages of several lines --------------------------------------------------------------------------

SIZES = (
    "\tsize mismatch for head.weight: copying a param with shape torch.Size([1000, 24]) from checkpoint, "
    "the shape in current model is torch.Size([37, 24])."
)


@pytest.mark.parametrize(
    ("head", "below", "text"),
    [
        (
            "Error(s) in loading state_dict for Net:",
            (SIZES, SIZES.replace("weight", "bias")),
            "size mismatch for head.weight: [1000, 24] in the checkpoint, [37, 24] in the model (and 1 more error)",
        ),
        (
            "Error(s) in loading state_dict for Net:",
            ('\tMissing key(s) in state_dict: "a", "b", "c". ', '\tUnexpected key(s) in state_dict: "module.a", "x". '),
            'Missing key(s) in state_dict: "a" and 2 more; Unexpected key(s) in state_dict: "module.a", "x"',
        ),
        (
            "2 validation errors for DeepSpeedZeroConfig",
            (
                "stage3_prefetch_bucket_size",
                "  Input should be a valid integer [type=int_from_float, input_value=11324620.8, input_type=float]",
                "    For further information visit https://errors.pydantic.dev/2.10/v/int_from_float",
                "offload.device",
                "  Input should be 'cpu' [type=enum, input_value='gpu', input_type=str]",
            ),
            "stage3_prefetch_bucket_size: Input should be a valid integer (it is 11324620.8) (and 1 more error)",
        ),
        (
            "Expected to have finished reduction in the prior iteration before starting a new one. This error",
            ("making sure all outputs are used. ", "Parameter indices which did not receive grad for rank 0: 6 7"),
            (
                "Expected to have finished reduction in the prior iteration before starting a new one: "
                "Parameter indices which did not receive grad for rank 0: 6 7"
            ),
        ),
        (
            "Key 'lr' is not in struct",
            ("    full_key: optim.lr", "    object_type=dict"),
            "Key 'lr' is not in struct (full_key: optim.lr)",
        ),
        (
            "Error in call to target 'net.GPT':",
            ("TypeError(\"unexpected keyword argument 'n_head'\")", "full_key: model"),
            "Error in call to target 'net.GPT': TypeError(\"unexpected keyword argument 'n_head'\")",
        ),
        (
            "CUDA error: device-side assert triggered",
            ("CUDA kernel errors might be asynchronously reported", "For debugging consider CUDA_LAUNCH_BLOCKING=1"),
            "CUDA error: device-side assert triggered",
        ),
        ("The actor died unexpectedly before finishing this task.", ("\tpid: 3190",), None),
    ],
)
def test_a_message_is_told_with_the_line_that_names_what_is_wrong(head, below, text):
    assert add_detail(head, below) == (text or head)


def test_further_lines_of_a_message_are_read_by_rank_and_end_where_something_else_begins():
    parts = [of(r, trace(f"RuntimeError: Error(s) in loading state_dict for Net:\n{SIZES}")) for r in (0, 1)]
    mixed = [row for rows in zip(*(part.split("\n") for part in parts), strict=True) for row in rows]
    found = failed(*mixed, of(0, "step 3 loss 2.1"))

    assert "size mismatch for head.weight: [1000, 24] in the checkpoint" in found.summary
    raised = event_reader.find_events(lines.split_lines("\n".join((*mixed, of(0, "step 3 loss 2.1"))))).raised
    assert [[text for _, text in r.below] for r in raised] == [[SIZES], [SIZES]]


# -- tracebacks of several processes, mixed line by line -------------------------------------------------

VALUE = """\
Traceback (most recent call last):
  File "/w/p.py", line 9, in <module>
    main(int(sys.argv[1]))
  File "/w/p.py", line 8, in main
    raise ValueError("length 5 is not 64")
ValueError: length 5 is not 64"""
KEY = """\
Traceback (most recent call last):
  File "/w/p.py", line 9, in <module>
    main(int(sys.argv[1]))
  File "/w/p.py", line 7, in main
    return load(i)
  File "/w/p.py", line 4, in load
    return table[i]
KeyError: 'w3'"""
ENDS = {"ValueError: length 5 is not 64": 8, "KeyError: 'w3'": 4}


def mixes(texts, count):
    chance = random.Random(3)
    for _ in range(count):
        rest = [text.split("\n") for text in texts]
        rows = []
        while any(rest):
            rows.append(chance.choice([each for each in rest if each]).pop(0))
        yield "\n".join(rows)


@pytest.mark.parametrize(("texts", "least"), [((VALUE, VALUE), 200), ((VALUE, KEY), 105)])
def test_mixed_tracebacks_are_taken_apart(texts, least):
    """Each message is whole; where a line of code can belong to either of two places, no place is told."""
    found = [event_reader.find_events(lines.split_lines(mix)).raised for mix in mixes(texts, 100)]

    assert all({r.text for r in raised} == {text.rpartition("\n")[2] for text in texts} for raised in found)
    placed = [ENDS[r.text] == r.frames[-1].line for raised in found for r in raised if r.frames]
    assert sum(placed) >= least
    assert len(placed) - sum(placed) <= 2  # a frame that two processes share, below that which raised


def test_two_lines_that_became_one_are_read_as_the_first():
    glued = "\n".join("".join(pair) for pair in itertools.zip_longest(VALUE.split("\n"), VALUE.split("\n")))
    raised = event_reader.find_events(lines.split_lines(glued)).raised

    assert {r.text for r in raised} == {"ValueError: length 5 is not 64"}


def test_steps_below_mixed_tracebacks_are_steps():
    output = "\n".join((next(mixes((VALUE, KEY), 1)), "step 1 loss 2.1", "step 2 loss 2.1"))

    assert sum(map(len, event_reader.find_events(lines.split_lines(output)).steps.values())) == 2
