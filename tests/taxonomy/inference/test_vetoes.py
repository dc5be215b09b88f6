"""Facts of the same material veto causes and steps that they contradict."""

import msgspec
import pytest

from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.inference.finding import Finding
from dtdebug_taxonomy.inference.next_step import _tells, fit_to_job, next_step
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.model.snapshot import Snapshot
from dtdebug_taxonomy.presentation.answer import build_answer
from dtdebug_taxonomy.verdicts.from_log import verdict_of_log

UNFINISHED = "RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one. "
PROPOSED = "You can enable unused parameter detection by passing the keyword argument `find_unused_parameters=True`."
MISMATCH = "[rank0]: RuntimeError: Detected mismatch between collectives on ranks. Rank 0 is running collective: X"
DISPATCH = """[rank0]: Traceback (most recent call last):
[rank0]:   File "/home/me/train.py", line 27, in <module>
[rank0]:     for tokens, label in loader:
[rank0]:   File "/env/lib/python3.11/site-packages/torch/utils/data/_utils/collate.py", line 275, in collate_tensor_fn
[rank0]:     return torch.stack(batch, 0, out=out)
[rank0]: RuntimeError: stack expects each tensor to be equal size, but got [7] at entry 0 and [13] at entry 1
"""


def fixes(output, **parts):
    """Return the fixes of all causes of an output."""
    return [a.fix for a in diagnose(load(), Snapshot(output=output, **parts)).advice]


@pytest.mark.parametrize(
    ("parts", "proposed"),
    [
        ({}, True),
        ({"cell": "model = DDP(net, find_unused_parameters=True)"}, False),
        ({"command": ("torchrun", "train.py", "--find_unused_parameters=True")}, False),
        ({"situation": "It fails although find_unused_parameters=True is already set."}, False),
    ],
)
def test_an_option_that_is_set_is_not_proposed(parts, proposed):
    """A message that proposes it does not set it."""
    first = fixes(UNFINISHED + PROPOSED, **parts)
    assert proposed == any(fix.startswith("Pass find_unused_parameters=True") for fix in first)


def test_an_output_outside_the_loss_is_named():
    """DDP says so if it searched the graph."""
    text = (
        "Since `find_unused_parameters=True` is enabled, this likely  means that not all `forward` outputs participate"
    )
    assert fixes(UNFINISHED + text)[0].startswith("Let every output of `forward` enter the loss")


def test_a_debug_mode_that_printed_the_message_is_not_proposed():
    """Its message shows that it is on."""
    first = fixes(MISMATCH)
    assert first
    assert "TORCH_DISTRIBUTED_DEBUG" not in first[0]


def test_a_loader_worker_that_was_killed_points_at_host_memory():
    """SIGKILL is what the kernel sends; the memory of devices ends no process."""
    killed = "[rank0]: RuntimeError: DataLoader worker (pid 9382) is killed by signal: Killed."
    snapshot = Snapshot(output=killed)
    found = diagnose(load(), snapshot)
    assert found.advice[0].cause == "host-memory-limit-too-small"
    assert "nvidia-smi" not in (found.next.command if found.next is not None else "")
    assert build_answer(found, snapshot).fix is not None


@pytest.mark.parametrize(("evidence", "offered"), [("gloo-full-mesh-failed", False), ("rdzv-timeout", True)])
def test_a_step_about_a_phase_that_has_passed_is_not_offered(evidence, offered):
    """Ranks that open connections to one another have met."""
    starting = Finding(evidence="activity", values=("initializing",), source="answered")
    step = next_step(
        load(), Snapshot(), ({"B.1": 1.0}, [starting, Finding(evidence=evidence, source="printed")]), None, None
    )
    assert offered == (step is not None and step.command.startswith("ss -ltnp"))


@pytest.mark.parametrize("read", [False, True])
def test_the_source_is_not_checked_twice(read):
    """Files that stacks name were read, with findings or without."""
    check = next(m for m in load().measures if m.id == "check-the-source")
    assert (_tells(check, Snapshot(source_read=read), {"D.2.4": 1.0}, []) > 0) == (not read)


def test_a_library_that_is_nowhere_to_be_seen_vetoes_its_causes():
    """What only Accelerate's dispatcher does is no cause where neither words nor stack show it."""
    assert "batches-cannot-be-dispatched" not in {a.cause for a in diagnose(load(), Snapshot(output=DISPATCH)).advice}


def test_a_message_that_states_what_was_expected_is_not_called_unknown():
    """It is the answer, and no question follows an exception."""
    snapshot = Snapshot(output=DISPATCH)
    snapshot = msgspec.structs.replace(snapshot, verdict=verdict_of_log(snapshot))
    answer = build_answer(diagnose(load(), snapshot), snapshot)
    assert answer.sure == "stated"
    assert "got [7] at entry 0 and [13] at entry 1" in answer.headline
    assert answer.next is None or not answer.next.text.startswith("Answer this")


def test_an_assertion_without_words_is_shown_with_what_it_asserts():
    """The class alone decides nothing."""
    lines = (
        "Traceback (most recent call last):",
        '  File "/home/me/train.py", line 3, in <module>',
        "    assert metadata is not None",
        "AssertionError",
    )
    verdict = verdict_of_log(Snapshot(output="".join(f"[rank7]: {line}\n" for line in lines)))
    assert verdict is not None
    assert verdict.summary.startswith("Rank 7 raised AssertionError: assert metadata is not None")


ORDINAL = "torchrun train.py\n[rank1]: RuntimeError: CUDA error: invalid device ordinal\n"


@pytest.mark.parametrize(
    ("shown", "proposed"),
    [
        ("", True),
        ("torch.cuda.set_device(local_rank)\n", False),
        ('torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))\n', False),
        ("torch.cuda.set_device(dist.get_rank())\n", True),
    ],
)
def test_a_call_that_is_shown_as_the_fix_has_it_is_not_proposed(shown, proposed):
    """A device number that is the local rank already is no mistake."""
    causes = [a.cause for a in diagnose(load(), Snapshot(output=f"{shown}{ORDINAL}")).advice]
    assert proposed == ("global-rank-used-as-device" in causes)


def test_ranks_that_read_a_file_each_do_not_race_for_one():
    """Their paths differ in a number only."""
    own = "".join(f"rank {n} reads shards/s{n}.tar.gz\n" for n in range(3))
    same = "".join(f"rank {n} reads shards/s0.tar.gz\n" for n in range(3))
    error = "[rank1]: EOFError: Compressed file ended before the end-of-stream marker was reached\n"
    causes = {text: [a.cause for a in diagnose(load(), Snapshot(output=text + error)).advice] for text in (own, same)}
    assert "all-ranks-prepare-the-same-files" in causes[same]
    assert "all-ranks-prepare-the-same-files" not in causes[own]


def test_each_with_an_option_says_that_it_is_set():
    """As people put it."""
    first = fixes(UNFINISHED + PROPOSED, situation="I wrap three models, each with `find_unused_parameters=True`.")
    assert not any(fix.startswith("Pass find_unused_parameters=True") for fix in first)


def test_how_a_failure_shows_makes_no_printed_cause_certain():
    """That a rank raised is measured; why its message was printed is not."""
    output = (
        '[rank0]: Traceback (most recent call last):\n[rank0]:   File "train.py", line 7, in <module>\n'
        "[rank0]: RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:1 "
        "and cuda:0!\n"
    )
    snapshot = Snapshot(output=output)
    snapshot = msgspec.structs.replace(snapshot, verdict=verdict_of_log(snapshot))
    found = diagnose(load(), snapshot)
    assert any(r.source == "measured" for r in found.advice[0].because)
    assert build_answer(found, snapshot).sure == "likely"


@pytest.mark.parametrize(
    ("started", "launcher", "told"),
    [
        ((), "", "dtdebug run -- torchrun ... train.py"),
        ((), "slurm", "dtdebug run -- srun ... python train.py"),
        (("mpirun", "-np", "4", "python", "fit.py"), "mpirun", "dtdebug run -- mpirun -np 4 python fit.py"),
        (("fit.py",), "ray", "dtdebug run -- python fit.py"),
    ],
)
def test_a_step_is_written_for_the_launcher_of_the_job(started, launcher, told):
    known = [Finding(evidence="launcher", values=(launcher,), source="said")] if launcher else []

    assert told == fit_to_job("dtdebug run -- torchrun ... train.py", known, started)


def test_variables_of_a_step_reach_the_hosts_of_mpirun():
    known = [Finding(evidence="launcher", values=("mpirun",), source="said")]
    told = fit_to_job("NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=NET torchrun ... train.py 2>&1 | grep NET", known, ())

    assert "mpirun -x NCCL_DEBUG=INFO -x NCCL_DEBUG_SUBSYS=NET ... python train.py 2>&1 | grep NET" == told


def test_a_program_that_is_not_python_is_not_run_under_dtdebug():
    said = "It hangs at the set-up on two hosts:\nmpirun -np 2 -H a,b /opt/nccl/all_reduce_perf -b 8 -g 8\n"
    step = diagnose(load(), Snapshot(situation=said)).next

    assert step is not None
    assert not step.command.startswith("dtdebug run")
