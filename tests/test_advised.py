"""What the message of the failure itself says to do."""

import pytest

from dtdebug_taxonomy.advised import advised
from dtdebug_taxonomy.diagnosis import diagnose
from dtdebug_taxonomy.endings import endings
from dtdebug_taxonomy.knowledge import load
from dtdebug_taxonomy.snapshot import ExceptionInfo, Snapshot


def raised(message, kind="ValueError"):
    return (
        "[rank0]: Traceback (most recent call last):\n"
        '[rank0]:   File "/app/train.py", line 12, in <module>\n'
        "[rank0]:     main()\n"
        f"[rank0]: {kind}: {message}\n"
    )


@pytest.mark.parametrize(
    ("message", "words", "orders"),
    [
        (
            "Mode 'sync' is gone. Please set `rollout.mode=async` to go on.",
            "Please set `rollout.mode=async` to go on.",
            True,
        ),
        ("Too few blocks. Try increasing `gpu_memory_utilization`.", "Try increasing `gpu_memory_utilization`.", True),
        (
            "heads (12) must be divisible by tensor parallel size (8)",
            "heads (12) must be divisible by tensor parallel size (8)",
            False,
        ),
        ("bf16 is not supported on this device with ZeRO-1", "bf16 is not supported on this device with ZeRO-1", False),
    ],
)
def test_the_sentence_that_says_so_is_found(message, words, orders):
    """An order comes before a mere statement of what is wrong."""
    found = advised(endings(Snapshot(output=raised(message))))

    assert found is not None
    assert (found.words, found.orders, found.rank, found.line) == (words, orders, 0, 4)


@pytest.mark.parametrize(
    "message",
    [
        "CUDA error: unspecified launch failure. For debugging consider passing CUDA_LAUNCH_BLOCKING=1",
        "unhandled system error (run with NCCL_DEBUG=INFO for details)",
        "internal error. Please report this issue to the developers",
        "If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
        "list index out of range",
    ],
)
def test_hints_under_every_error_are_no_advice(message):
    """What frameworks print anyway is not about this failure."""
    assert advised(endings(Snapshot(output=raised(message, "RuntimeError")))) is None


def test_a_warning_beside_the_failure_is_no_advice():
    """Only the exception that ended the rank counts."""
    output = "UserWarning: please use torchrun in place of it.\n" + raised("list index out of range", "IndexError")

    assert advised(endings(Snapshot(output=output))) is None


def test_the_exception_of_a_cell_counts_too():
    """Notebooks give the exception itself; it has no line."""
    info = ExceptionInfo(type="ValueError", message="Install apex to use this. You must install it first.")
    found = advised(endings(Snapshot(exception=info)))

    assert found is not None
    assert found.orders
    assert found.line == 0


def test_it_comes_first_and_a_cause_that_a_message_names_before_it():
    """The message's own word outweighs resemblance, not a cause that is known by the message."""
    knowledge = load()
    first = diagnose(knowledge, Snapshot(output=raised("Mode is gone. Please set `rollout.mode=async`."))).advice[0]
    named = diagnose(
        knowledge,
        Snapshot(output=raised("Duplicate GPU detected: rank 0 and rank 1. Please set the device.", "RuntimeError")),
    ).advice[0]

    assert (first.cause, first.because[0].line) == ("message-says-so", 4)
    assert named.cause == "processes-see-wrong-devices"
