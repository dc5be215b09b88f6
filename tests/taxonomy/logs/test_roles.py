"""The role of an exception: class and place decide, never a loose word of its message."""

import asyncio
import json

import pytest

from dtdebug.live.agent.exit_hooks import primary
from dtdebug.live.agent.own_frames import describe_exception
from dtdebug_taxonomy.logs.event_reader import find_events
from dtdebug_taxonomy.logs.exception_roles import loses_peer, role_of
from dtdebug_taxonomy.logs.lines import split_lines
from dtdebug_taxonomy.logs.log import role
from dtdebug_taxonomy.model.ranks import Frame

SITE = "/opt/env/lib/python3.11/site-packages"
USER = Frame("/home/user/train.py", 12, "step", "batch = fetch(url)")
RAISE = Frame("/home/user/train.py", 13, "step", "raise Problem(words)")
LIBRARY = Frame(f"{SITE}/requests/adapters.py", 1, "send", "raise E(e)")
BACKWARD = (
    Frame("/home/user/train.py", 14, "step", "loss.backward()"),
    Frame(f"{SITE}/torch/autograd/graph.py", 979, "_engine_run_backward", "return engine.run_backward("),
)
COLLECTIVE = (
    Frame("/home/user/train.py", 15, "step", "dist.all_reduce(t)"),
    Frame(f"{SITE}/torch/distributed/distributed_c10d.py", 3120, "all_reduce", "work.wait()"),
)
MESH = "Gloo connectFullMesh failed with [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:152] timed out"
GLOO = "[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:22405"

FOREIGN = [
    "requests.exceptions.ReadTimeout: HTTPSConnectionPool(host='hub', port=443): Read timed out. (read timeout=10)",
    "requests.exceptions.ConnectTimeout: HTTPSConnectionPool(host='a', port=443): Max retries exceeded with url: /x",
    "requests.exceptions.ConnectionError: ('Connection aborted.', RemoteDisconnected('Remote end closed connection'))",
    "requests.exceptions.ChunkedEncodingError: ('Connection broken: IncompleteRead(0 bytes read)', IncompleteRead())",
    "requests.exceptions.SSLError: HTTPSConnectionPool(host='a', port=443): certificate verify failed",
    "requests.exceptions.HTTPError: 504 Server Error: Gateway Time-out for url: https://a/b",
    "requests.exceptions.JSONDecodeError: Expecting value: line 1 column 1 (char 0)",
    "urllib3.exceptions.MaxRetryError: HTTPConnectionPool(host='a', port=80): Max retries exceeded (timeout)",
    "urllib3.exceptions.NewConnectionError: Failed to establish a new connection: [Errno 111] Connection refused",
    "urllib3.exceptions.ProtocolError: ('Connection broken: ConnectionResetError(104)', ConnectionResetError())",
    "urllib3.exceptions.ReadTimeoutError: HTTPSConnectionPool(host='a', port=443): Read timed out.",
    "urllib.error.URLError: <urlopen error [Errno 110] Connection timed out>",
    "urllib.error.HTTPError: HTTP Error 408: Request Timeout",
    "http.client.RemoteDisconnected: Remote end closed connection without response",
    "http.client.IncompleteRead: IncompleteRead(512 bytes read, 100 more expected)",
    "socket.gaierror: [Errno -2] Name or service not known",
    "ssl.SSLEOFError: EOF occurred in violation of protocol (_ssl.c:2427)",
    "subprocess.TimeoutExpired: Command '['ffmpeg']' timed out after 30 seconds",
    "subprocess.CalledProcessError: Command '['aws', 's3', 'cp']' returned non-zero exit status 255.",
    "concurrent.futures._base.TimeoutError",
    "concurrent.futures.process.BrokenProcessPool: A process in the process pool was terminated abruptly",
    "asyncio.exceptions.IncompleteReadError: 0 bytes read on a total of 4 expected bytes",
    "asyncio.exceptions.CancelledError",
    "queue.Empty",
    "queue.Full",
    "huggingface_hub.errors.HfHubHTTPError: 504 Server Error: Gateway Time-out for url",
    "huggingface_hub.errors.LocalEntryNotFoundError: An error happened while trying to locate the file; no connection",
    "huggingface_hub.errors.RepositoryNotFoundError: 401 Client Error",
    "huggingface_hub.errors.GatedRepoError: 403 Client Error. Access to model is restricted",
    "datasets.exceptions.DatasetGenerationError: An error occurred while generating the dataset",
    "datasets.exceptions.DatasetNotFoundError: Dataset 'nccl/peers' doesn't exist on the Hub",
    "datasets.table.CastError: Couldn't cast array of type socket to null",
    "filelock._error.Timeout: The file lock '/nfs/cache/x.lock' could not be acquired.",
    "json.decoder.JSONDecodeError: Expecting ',' delimiter: line 3 column 7 (char 61)",
    "_pickle.UnpicklingError: pickle data was truncated",
    "_pickle.PicklingError: Can't pickle <function <lambda> at 0x7f>: attribute lookup failed",
    "pickle.UnpicklingError: invalid load key, 'v'.",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
    "torch.cuda.OutOfMemoryError: CUDA out of memory.",
    "torch.AcceleratorError: CUDA error: device-side assert triggered",
    "torch._dynamo.exc.Unsupported: call_function BuiltinVariable(recv)",
    "torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised: TimeoutError",
    "torch.jit.Error: Dimension out of range",
    "torch.linalg.LinAlgError: linalg.cholesky: the factorization could not be completed",
    "RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x3 and 5x2)",
    "RuntimeError: CUDA error: an illegal memory access was encountered",
    "RuntimeError: DataLoader worker (pid 71) is killed by signal: Killed.",
    "RuntimeError: DataLoader timed out after 30 seconds",
    "RuntimeError: timed out: NFS does not answer",
    "RuntimeError: cannot open the socket file /tmp/x.sock",
    "RuntimeError: recv buffer is too small",
    "RuntimeError: the remote worker has closed the connection by peer review",
    "RuntimeError: collective agreement mismatch",
    "RuntimeError: gloo finish of the lip gloss pair is missing",
    "numpy.exceptions.AxisError: axis 2 is out of bounds for array of dimension 2",
    "numpy.linalg.LinAlgError: SVD did not converge, timed out",
    "numpy.core._exceptions._ArrayMemoryError: Unable to allocate 7.45 GiB for an array",
    "zipfile.BadZipFile: File is not a zip file",
    "zlib.error: Error -3 while decompressing data: incorrect header check",
    "tarfile.ReadError: unexpected end of data",
    "PIL.UnidentifiedImageError: cannot identify image file 'peer.png'",
    "pandas.errors.ParserError: Error tokenizing data. C error: Expected 3 fields, saw 4",
    "pyarrow.lib.ArrowInvalid: Could not open Parquet input source: Broken pipe of data",
    "sqlite3.OperationalError: database is locked (timed out)",
    "yaml.scanner.ScannerError: mapping values are not allowed here",
    "botocore.exceptions.ReadTimeoutError: Read timeout on endpoint URL",
    "botocore.exceptions.EndpointConnectionError: Could not connect to the endpoint URL",
    "wandb.errors.CommError: Error communicating with wandb process: timed out",
    "redis.exceptions.ConnectionError: Error 111 connecting to localhost:6379. Connection refused.",
    "grpc._channel._InactiveRpcError: <_InactiveRpcError of RPC that terminated with: UNAVAILABLE: socket closed>",
    "tokenizers.Exception: No such file or directory",
    "safetensors_rust.SafetensorError: Error while deserializing header: HeaderTooLarge",
    "OSError: [Errno 5] Input/output error: '/nfs/peer/socket'",
    "OSError: [Errno 28] No space left on device",
    "OSError: [Errno 116] Stale file handle",
    "OSError: [Errno 24] Too many open files",
    "FileNotFoundError: [Errno 2] No such file or directory: '/run/nccl.socket'",
    "PermissionError: [Errno 13] Permission denied: 'recv'",
    "TimeoutError: the licence server did not answer",
    "KeyError: 'timeout'",
    "ValueError: timeout must be positive, got peer",
    "AssertionError: broken pipe in plant 7",
    "MemoryError",
    "StopIteration",
    "UnicodeDecodeError: 'utf-8' codec can't decode byte 0x80 in position 3: invalid start byte",
    "mylib.DistStoreError: the shop is closed",
    "DistrictError: Connection closed by peer",
]
ECHOES = [
    f"RuntimeError: {GLOO}. This is typically caused by a remote worker crashing.",
    f"RuntimeError: {MESH} connecting: SO_ERROR: Connection refused, remote=[127.0.0.1]:27026",
    "RuntimeError: [pair.cc:553] Connection closed by peer [127.0.0.1]:1",
    "RuntimeError: [unbound_buffer.cc:78] Timed out waiting 10000ms for recv operation to complete",
    "RuntimeError: [../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 1800000ms for",
    "RuntimeError: [enforce fail at ../third_party/gloo/gloo/transport/tcp/pair.cc:446] op.preamble.length <= op",
    "RuntimeError: Rank 2 successfully reached monitoredBarrier, but received errors while waiting for rank 0.",
    "RuntimeError: [Rank 0]: Ranks 1 failed to pass monitoredBarrier in 3000 ms",
    "RuntimeError: Detected mismatch between collectives on ranks. Rank 0 is running collective: Coll(",
    "RuntimeError: NCCL communicator was aborted on rank 1.  Original reason for failure was: watchdog",
    "RuntimeError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1331, unhandled system error",
    "RuntimeError: [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE)",
    "RuntimeError: Connection reset by peer",
    "RuntimeError: Broken pipe",
    "RuntimeError: Socket Timeout",
    "RuntimeError: Timed out initializing process group in store based barrier on rank: 1",
    "torch.distributed.DistBackendError: NCCL error in: x.cpp:1, unhandled system error",
    "torch.distributed.DistStoreError: Timed out after 61 seconds waiting for clients. 1/2 clients joined.",
    "torch.distributed.DistNetworkError: failed to recv, got 0 bytes",
    "torch.distributed.DistNetworkError: The client socket has failed to connect to any network address of (h, 1).",
    "DistBackendError: [0] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d",
    "horovod.common.exceptions.HorovodInternalError: Horovod has been shut down.",
    "torch.distributed.elastic.rendezvous.api.RendezvousClosedError",
    "tensorflow.python.framework.errors_impl.UnavailableError: Collective ops is aborted by: Socket closed",
    "jax.errors.XlaRuntimeError: DEADLINE_EXCEEDED: Barrier timed out",
    "gloo::EnforceNotMet: 396 vs 388",
    "BrokenPipeError: [Errno 32] Broken pipe",
]  # fmt: skip


@pytest.mark.parametrize("exception", FOREIGN)
@pytest.mark.parametrize("frames", [(), (USER,), (RAISE,), (USER, LIBRARY)])
def test_an_error_of_other_code_is_the_ranks_own_whatever_it_says(exception, frames):
    """Real libraries' classes and messages, with words that communication prints too."""
    assert "own" == role_of(exception, frames)


@pytest.mark.parametrize("exception", ECHOES)
def test_a_lost_peer_is_an_echo(exception):
    """Whether or not it is known where it was raised, as long as the program did not raise it."""
    assert all(loses_peer(exception, frames) for frames in ((), BACKWARD, COLLECTIVE))


@pytest.mark.parametrize("exception", ECHOES)
def test_words_of_communication_that_the_program_raises_are_its_own(exception):
    """Its own line says `raise`: nobody else chose the class or the message."""
    assert not loses_peer(exception, (RAISE,))


def test_the_systems_words_count_where_communication_raised_them():
    """`Connection reset by peer` of a download is not that of a rank."""
    download = (USER, Frame("/usr/lib/python3.11/socket.py", 700, "readinto", "return self._sock.recv_into(b)"))
    words = "ConnectionResetError: [Errno 104] Connection reset by peer"

    assert not loses_peer(words, download)
    assert loses_peer(words, COLLECTIVE)


def test_what_gloo_refuses_before_it_sends_is_the_ranks_own():
    """Lengths that do not fit its own buffers; what another rank sent is met in the transport."""
    gloo = "RuntimeError: [enforce fail at /x/third_party/gloo/gloo"
    said = f"{gloo}/alltoallv.cc:138] inLengthPerRank[myRank] == outLengthPerRank[myRank]"

    assert "own" == role_of(said, COLLECTIVE)
    assert "peer" == role_of(f"{gloo}/transport/tcp/pair.cc:446] op.preamble.length <= op.nbytes", COLLECTIVE)


def test_a_port_in_use_is_the_ranks_own():
    """No peer can explain that the rank's own host refuses to listen."""
    words = "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address."

    assert "own" == role_of(f"{words} port: 29500, useIpv6: false, code: -98, name: EADDRINUSE")


def test_a_parent_that_says_where_the_failure_of_its_child_stands_is_no_culprit():
    words = "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"

    assert "launcher" == role_of(words, (USER, LIBRARY))
    assert "own" == role_of(words, (RAISE,))


@pytest.mark.parametrize("kind", ["KeyboardInterrupt", "torch.distributed.elastic.multiprocessing.api.SignalException"])
def test_who_was_ended_is_no_culprit(kind):
    """By a user's interrupt or by the launcher's signal."""
    assert "launcher" == role_of(f"{kind}: Process 7 got signal: 15", (RAISE,))


def test_any_text_has_a_role():
    """What ranks raise may be anything."""
    for text in ("", ":", "::", "a" * 10_000, "[" * 9_000, "RuntimeError: [" + "x/" * 900, "\n\n", "é: ü"):
        assert role_of(text) in ("own", "peer", "launcher")


def test_an_exception_that_cannot_be_printed_is_recorded():
    """Its `__str__` raises: class and place are known all the same."""

    class MuteError(Exception):
        def __str__(self):
            raise RuntimeError("no words")

    assert describe_exception(MuteError()).endswith("MuteError: <exception str() failed>")
    assert "ValueError: a" == describe_exception(ValueError("a\nb"))
    assert "KeyError" == describe_exception(KeyError()).rstrip(": ")
    assert "json.decoder.JSONDecodeError: x: line 1 column 1 (char 0)" == describe_exception(
        json.JSONDecodeError("x", "", 0)
    )


CALLED = """On WorkerInfo(id=2, name=worker2):
KeyError('beta')
Traceback (most recent call last):
  File "/job/table.py", line 7, in lookup
    return value[name]
KeyError: 'beta'
"""


@pytest.mark.parametrize("caller", ["KeyError: 'On WorkerInfo(id=2, name=w2):\\nTraceback (most recent call last):\\n'",
                                    "On WorkerInfo(id=2, name=w2):"])  # fmt: skip
def test_what_a_called_worker_raised_is_its_own_and_an_echo_at_the_caller(caller):
    """It is printed by both; where no caller ends by it, it was handled."""
    ended = f'Traceback (most recent call last):\n  File "/job/main.py", line 9, in main\nRuntimeError: {caller}\n'
    called, calls = find_events(split_lines(CALLED + ended)).raised[:2]

    assert (2, "KeyError", False, "own") == (called.rank, called.type, called.unheeded, role(called))
    assert (None, "peer") == (calls.rank, role(calls))
    assert find_events(split_lines(CALLED)).raised[0].unheeded


def test_a_group_of_exceptions_is_told_by_the_first_in_it():
    """The group only holds what its tasks raised."""

    async def fetch():
        raise ConnectionAbortedError("shard 2: aborted")

    async def shards():
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(fetch())

    with pytest.raises(ExceptionGroup) as caught:
        asyncio.run(shards())
    text, frames = primary(caught.value)

    assert ("ConnectionAbortedError: shard 2: aborted", "fetch") == (text, frames[-1].function)
