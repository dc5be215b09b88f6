"""Exceptions become text and numbers; probes never raise."""

import sys
from types import SimpleNamespace

import pytest

from dtdebug.capture import capture, describe, from_traceback
from dtdebug.process import gpus, rank_state
from dtdebug_taxonomy.model.snapshot import ExceptionInfo, walk

CHILD = """

-- Process 1 terminated with the following error:
Traceback (most recent call last):
  File "/venv/torch/multiprocessing/spawn.py", line 90, in _wrap
    fn(i, *args)
  File "/job/train.py", line 12, in train
    raise ValueError("shapes differ: (3,) and (4,)")
ValueError: shapes differ: (3,) and (4,)
"""


class ProcessRaisedException(Exception):  # noqa: N818 - torch's name
    """As torch.multiprocessing raises it: error_index is a slot."""

    __slots__ = ("error_index", "error_pid", "msg")

    def __init__(self, msg, error_index, error_pid):
        super().__init__(msg)
        self.msg, self.error_index, self.error_pid = msg, error_index, error_pid


class ChildFailedError(Exception):
    """As torch.distributed.elastic raises it."""

    def __init__(self, failures):
        super().__init__("train.py FAILED")
        self.failures = failures


def raised(exception):
    try:
        raise exception
    except BaseException as error:
        return error


def test_the_chain_is_described():
    """Cause, context, notes, frames with their lines."""
    try:
        try:
            1 / 0
        except ZeroDivisionError as inner:
            error = RuntimeError("outer")
            error.add_note("step 3")
            raise error from inner
    except RuntimeError as outer:
        info = describe(outer)

    assert info.type == "RuntimeError"
    assert info.notes == ("step 3",)
    assert info.causes[0].type == "ZeroDivisionError"
    assert __file__ == info.frames[-1].file
    assert "raise error from inner" in info.frames[-1].code


def test_a_spawned_rank_is_read_from_the_structured_fields():
    """ProcessRaisedException tells the rank, and its message the child's own exception."""
    info = describe(raised(ProcessRaisedException(CHILD, 1, 4242)))
    (child,) = info.causes

    assert (info.rank, info.pid) == (1, 4242)
    assert child.type == "ValueError"
    assert child.message == "shapes differ: (3,) and (4,)"
    assert child.rank == 1
    assert child.frames[-1].file == "/job/train.py"


def test_elastic_failures_are_read_rank_by_rank():
    """ChildFailedError carries a record for each rank, with the child's stack or its signal."""
    data = {"message": {"message": "ValueError: boom", "extraInfo": {"py_callstack": CHILD, "timestamp": "1"}}}
    failures = {
        3: SimpleNamespace(
            local_rank=3, pid=7, exitcode=1, error_file_data=data, message="", signal_name=lambda: "<N/A>"
        ),
        5: SimpleNamespace(
            local_rank=5, pid=8, exitcode=-9, error_file_data={}, message="Signal 9", signal_name=lambda: "SIGKILL"
        ),
    }
    first, second = describe(raised(ChildFailedError(failures))).causes

    assert (first.rank, first.type) == (3, "ValueError")
    assert (second.rank, second.exit_code, second.signal) == (5, -9, "SIGKILL")


def test_an_exception_that_can_not_be_printed_is_described_all_the_same():
    """A broken __str__ costs the message only."""

    class Hostile(Exception):  # noqa: N818
        def __str__(self):
            raise RuntimeError("no")

    assert "could not be had" in describe(raised(Hostile())).message


def test_a_text_that_ends_the_program_when_it_is_asked_for_costs_the_message_only():
    """`SystemExit` from `__str__`, from an attribute, from the methods of a class of text."""

    class Text(str):
        __slots__ = ()

        def __getitem__(self, _):
            raise SystemExit

        translate = strip = splitlines = __getitem__

    class Leaves(Exception):  # noqa: N818
        def __str__(self):
            raise SystemExit(3)

        def __getattribute__(self, name):
            if name in ("error_index", "failures", "msg", "exit_code"):
                raise SystemExit(5)
            return super().__getattribute__(name)

    class Odd(Exception):  # noqa: N818
        def __str__(self):
            return Text("odd")

    assert "SystemExit" in describe(raised(Leaves())).message
    assert "odd" == describe(raised(Odd())).message
    assert type(describe(raised(Odd())).message) is str


def test_messages_are_bounded_and_clean():
    """A message of ten million characters with escapes is cut and cleaned."""
    info = describe(raised(RuntimeError("\x1b[31m" + "x" * 10_000_000)))

    assert len(info.message) <= 16_000
    assert "\x1b" not in info.message


def test_a_group_is_described_member_by_member():
    """Each member of an ExceptionGroup is a cause."""
    info = describe(raised(ExceptionGroup("ranks", [ValueError("a"), KeyError("b")])))

    assert [c.type for c in info.causes] == ["ValueError", "KeyError"]


def test_a_failing_probe_becomes_a_note(monkeypatch):
    """Whatever a probe does, the snapshot is made."""
    monkeypatch.setattr(rank_state, "versions", lambda: 1 / 0)
    snapshot = capture(ValueError("x"), devices=False)

    assert snapshot.exception.type == "ValueError"
    assert any("versions: ZeroDivisionError" in note for note in snapshot.notes)


def test_capture_imports_no_framework():
    """What the user has not imported, we do not import."""
    before = {"torch", "tensorflow", "pynvml"} & set(sys.modules)
    capture(ValueError("x"))

    assert before == {"torch", "tensorflow", "pynvml"} & set(sys.modules)


def test_text_without_a_traceback_is_kept_as_a_message():
    """What can't be read back is still shown to the matchers."""
    assert ExceptionInfo(type="unknown", message="it broke") == from_traceback("it broke", None)


@pytest.mark.parametrize(
    ("variables", "rank", "world"),
    [
        ({"RANK": "3", "WORLD_SIZE": "8", "LOCAL_RANK": "1"}, 3, 8),
        ({"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"}, 0, 2),
        ({"SLURM_PROCID": "5", "SLURM_NTASKS": "16"}, 5, 16),
    ],
)
def test_a_rank_is_known_from_its_launchers_variables(monkeypatch, variables, rank, world):
    """torchrun, Open MPI, Slurm."""
    monkeypatch.delitem(sys.modules, "torch.distributed", raising=False)
    state = rank_state.rank_state(variables)

    assert (rank, world) == (state.rank, state.world_size)


def test_a_plain_process_is_no_rank(monkeypatch):
    """Without a launcher and a process group there is nothing to tell."""
    monkeypatch.delitem(sys.modules, "torch.distributed", raising=False)

    assert rank_state.rank_state({}) is None


class FakeNvml:
    """NVML as recorded from a machine with two A100, the second one a MIG slice without utilisation."""

    class NVMLError(Exception):
        """NVML's own."""

    def nvmlInit(self):
        pass

    def nvmlShutdown(self):
        pass

    def nvmlDeviceGetCount(self):
        return 2

    def nvmlDeviceGetHandleByIndex(self, index):
        return index

    def nvmlDeviceGetName(self, handle):
        return b"NVIDIA A100-SXM4-80GB"

    def nvmlDeviceGetUUID(self, handle):
        return f"GPU-{handle}"

    def nvmlDeviceGetMemoryInfo(self, handle):
        return SimpleNamespace(total=85_899_345_920, used=85_000_000_000 if handle == 0 else 1_000)

    def nvmlDeviceGetUtilizationRates(self, handle):
        if handle == 1:
            raise self.NVMLError
        return SimpleNamespace(gpu=97)

    def nvmlDeviceGetComputeRunningProcesses(self, handle):
        return [SimpleNamespace(pid=4242, usedGpuMemory=None)] if handle == 0 else []


def test_devices_are_read_as_nvml_reports_them():
    """Memory, utilisation and processes; what a slice does not support stays unknown."""
    first, second = gpus.read_devices(FakeNvml())

    assert (first.name, first.utilization, first.processes) == ("NVIDIA A100-SXM4-80GB", 97, ((4242, 0),))
    assert second.utilization is None


def test_nvml_that_hangs_is_given_up():
    """A device that has fallen off the bus costs the time limit, and a note says so."""
    found, note = gpus.gpus((sys.executable, "-c", "import time; time.sleep(60)"), timeout=0.5)

    assert found == ()
    assert "did not answer" in note


def test_nvml_that_is_missing_is_a_note():
    """Without a driver the reader fails with NVML's own words."""
    found, note = gpus.gpus((sys.executable, "-c", "import sys; sys.exit('NVML Shared Library Not Found')"))

    assert found == ()
    assert "NVML Shared Library Not Found" in note


class WrapperError(RuntimeError):
    """What a launcher raises for failures of its workers."""

    def __init__(self, **carried):
        super().__init__("2 errors")
        self.__dict__.update(carried)


ENGINE = 'Traceback (most recent call last):\n  File "train.py", line 5, in f\n    x[3]\nIndexError: out of range'


@pytest.mark.parametrize(
    ("wrapper", "innermost"),
    [
        (WrapperError(elist=[("IndexError", "too far", ENGINE, {"engine_id": 1})]), ("IndexError", "too far", 1)),
        (WrapperError(worker_failures={1: raised(KeyError("lr"))}), ("KeyError", "'lr'", 1)),
        (WrapperError(original_error=WrapperError(worker_failures={0: KeyError("x")})), ("KeyError", "'x'", 0)),
        (WrapperError(elist=[7, (1, 2), None], worker_failures={"a": 3}, original_error=5), (None, "2 errors", None)),
    ],
    ids=["ipyparallel", "ray", "nested", "of another form"],
)
def test_what_a_wrapper_carries_is_innermost(wrapper, innermost):
    """The error of a worker with its rank, not the launcher's count of errors."""
    first = next(walk(describe(wrapper)))

    assert innermost[1:] == (first.message, first.rank)
    assert innermost[0] in (None, first.type)


def test_the_traceback_of_a_pools_worker_is_read_from_its_text():
    """The exception itself has come by pickle, without the worker's frames."""

    class RemoteTraceback(Exception):  # noqa: N818 - multiprocessing's name
        def __str__(self):
            return f'\n"""\n{ENGINE}\n"""'

    error = IndexError("out of range")
    error.__cause__ = RemoteTraceback()
    found = [*walk(describe(error))]

    assert ["IndexError", "IndexError"] == [info.type for info in found]
    assert ("train.py", 5) == (found[0].frames[-1].file, found[0].frames[-1].line)


def test_what_a_loaders_worker_raised_is_read_from_the_message():
    """PyTorch raises it again in the process that iterates: the headline is the worker's error, at its line."""
    torch = pytest.importorskip("torch")

    class Windows(torch.utils.data.Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, i):
            return torch.arange(4)[i + 1]

    with pytest.raises(IndexError) as caught:
        list(torch.utils.data.DataLoader(Windows(), num_workers=1, multiprocessing_context="fork"))
    inner, outer = walk(describe(caught.value))

    assert outer.message.startswith("Caught IndexError in DataLoader worker process 0.")
    assert inner.message == "index 4 is out of bounds for dimension 0 with size 4"
    assert inner.frames[-1].code == "return torch.arange(4)[i + 1]"
