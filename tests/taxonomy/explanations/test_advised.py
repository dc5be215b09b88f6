"""What the message of the failure itself says to do."""

import pytest

from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.incident import Incident
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.logs.message_advice import advice_in_message
from dtdebug_taxonomy.model.snapshot import ExceptionInfo, Snapshot


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
        (
            "w is shared by two groups. For tied parameters, use fully_shard([a, b]) to join them.",
            "For tied parameters, use fully_shard([a, b]) to join them.",
            True,
        ),
        ("Invalid mesh. 'data' (3) * tensor (2) != 8.", "Invalid mesh. 'data' (3) * tensor (2) != 8.", False),
        ("bf16 is not supported on this device with ZeRO-1", "bf16 is not supported on this device with ZeRO-1", False),
        (
            "Detected a deprecated import. This class is not compatible with the new loop.",
            "This class is not compatible with the new loop.",
            False,
        ),
    ],
)
def test_the_sentence_that_says_so_is_found(message, words, orders):
    """An order comes before a mere statement of what is wrong."""
    found = advice_in_message(Incident(Snapshot(output=raised(message))).errors)

    assert found is not None
    assert (found.words, found.orders, found.rank, found.line) == (words, orders, 0, 4)


@pytest.mark.parametrize(
    ("code", "message", "words"),
    [
        (
            "raise ValueError(",
            "Bucket mesh and group have other members",
            "Bucket mesh and group have other members",
        ),
        (
            "assert size > 0, text",
            "Invalid layout: rows. Must be one of columns, tiles.",
            "Invalid layout: rows. Must be one of columns, tiles.",
        ),
        ("raise RuntimeError(text)", "worker 3 failed during start", ""),
        ("raise error", "Bucket mesh and group have other members", ""),
        ("return self.call(group)", "Bucket mesh and group have other members", ""),
    ],
)
def test_a_line_that_refuses_was_written_to_say_why(code, message, words):
    """What only says that something failed, or was handed on, is not what is wrong."""
    output = raised(message).replace("    main()", f"    {code}")
    found = advice_in_message(Incident(Snapshot(output=output)).errors)

    assert (found.words if found else "") == words


def test_a_sentence_goes_on_in_indented_lines_of_its_rank():
    """Lines of other ranks stand between."""
    output = raised("The module gave no tensor,").rstrip() + (
        "\n[rank1]: waits\n[rank0]:         but it must have at least one.\n[rank0]: done\n"
    )
    found = advice_in_message(Incident(Snapshot(output=output)).errors)

    assert found is not None
    assert found.words == "The module gave no tensor, but it must have at least one."


def test_arguments_that_the_program_does_not_take_are_its_end():
    """argparse prints no traceback; what a launcher prints after it is an echo."""
    output = (
        "w1: usage: train.py [-h] --output_dir OUTPUT_DIR\n"
        "w1: train.py: error: the following arguments are required: --output_dir\n"
        "w1: [2026-01-19 16:12:01,100] [INFO] [launch.py:319:sigkill_handler] Killing subprocess 3357\n"
    )
    d = diagnose(load(), Snapshot(output=output, situation="deepspeed on 2 hosts always fails"))

    assert d.advice[0].cause == "message-says-so"
    assert "the following arguments are required: --output_dir" in d.advice[0].title


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
    assert advice_in_message(Incident(Snapshot(output=raised(message, "RuntimeError"))).errors) is None


def test_a_warning_beside_the_failure_is_no_advice():
    """Only the exception that ended the rank counts."""
    output = "UserWarning: please use torchrun in place of it.\n" + raised("list index out of range", "IndexError")

    assert advice_in_message(Incident(Snapshot(output=output)).errors) is None


def test_the_exception_of_a_cell_counts_too():
    """Notebooks give the exception itself; it has no line."""
    info = ExceptionInfo(type="ValueError", message="Install apex to use this. You must install it first.")
    found = advice_in_message(Incident(Snapshot(exception=info)).errors)

    assert found is not None
    assert found.orders
    assert found.line == 0


def test_a_check_of_c_says_what_should_have_held():
    """What only tells that something failed there says no more than the line itself."""
    held = "rows % (tile * world_size) == 0 rows=90 tile=8"

    assert advice_in_message(
        Incident(Snapshot(output=raised(f"Check failed: {held}", "RuntimeError"))).errors
    ).words.endswith(held)
    assert (
        advice_in_message(
            Incident(Snapshot(output=raised("Check failed: (fd) > (0) open failed", "RuntimeError"))).errors
        )
        is None
    )


@pytest.mark.parametrize(
    ("message", "names"),
    [
        ("[RING_STEP]the buffer of ring_size must be even", ("ring_size",)),
        ("ring_size must be 2 [type=value_error, input_value={'max_steps': 1}, input_type=dict]", ("ring_size",)),
        ("comm_init.cpp:84 get_card: EXCEPTION: no card is available for ring_size", ("ring_size",)),
    ],
)
def test_where_a_library_says_it_is_no_setting(message, names):
    """Tags in brackets, what pydantic adds, and the place in a source of C++."""
    assert advice_in_message(Incident(Snapshot(output=raised(message))).errors).settings == names


def test_types_of_numbers_are_no_settings():
    merged = raised("Cannot merge two lists with different lengths (1 and 48, at (torch.bfloat16, torch.float32))")

    assert advice_in_message(Incident(Snapshot(output=merged)).errors) is None


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
