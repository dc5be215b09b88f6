"""Starts doctor on all nodes of a running Ray cluster (`--via ray`), as tasks that request no resources.

A child process talks to Ray: this process does not import it. The hosts meet at the first node's address and a free
port, as the workers of Ray Train do.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress

from dtdebug.doctor.host.torch_import import interpreter
from dtdebug.errors import UsageError
from dtdebug.privacy.sanitize import one_line

_MARK = "dtdebug-ray "
_DRIVER = """
import json, os, socket, subprocess, sys
import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy as On
asked = json.loads(sys.stdin.readline())
ray.init(address=asked['address'], log_to_driver=False, logging_level='ERROR')
nodes = sorted((n for n in ray.nodes() if n['Alive']), key=lambda n: (n['NodeManagerAddress'], n['NodeID']))
def free():
    with socket.socket() as plug:
        plug.bind(('', 0))
        return plug.getsockname()[1]
def examine(words, token, variables, limit):
    try:
        place = asked['place'] if os.path.isdir(asked['place']) else None
        done = subprocess.run(words, input=token + '\\n', capture_output=True, text=True, timeout=limit,
                              env={**os.environ, **variables}, cwd=place)
    except Exception as error:
        return '', str(error)[-300:]
    return done.stdout[-(16 << 20):], done.stderr[-300:]
def on(node, function):
    strategy = On(node_id=node['NodeID'], soft=False)
    return ray.remote(function).options(num_cpus=0, max_retries=0, scheduling_strategy=strategy)
head = nodes[0]['NodeManagerAddress']
port = ray.get(on(nodes[0], free).remote(), timeout=30)
variables = {'MASTER_ADDR': head, 'MASTER_PORT': str(port)}
tasks = []
for i, node in enumerate(nodes):
    words = [*asked['words'], '--node', str(i), '--nodes', str(len(nodes)), '--', *asked['command']]
    tasks.append(on(node, examine).remote(words, asked['token'], variables, asked['limit']))
for node, task in zip(nodes, tasks):
    try:
        out, error = ray.get(task, timeout=asked['limit'] + 30)
    except Exception as failure:
        out, error = '', type(failure).__name__ + ': ' + str(failure)[-300:]
    print('dtdebug-ray ' + json.dumps({'host': node['NodeManagerAddress'], 'out': out, 'error': error}), flush=True)
"""


def answers(command: Sequence[str], token: str, wait: float, limit: float) -> list[tuple[str, bytes, str]]:
    """Return (node's address, doctor's output, error) of each node.

    Raises:
        UsageError: Ray is not installed, or no cluster is running.

    """
    asked = {
        "address": os.environ.get("RAY_ADDRESS", "auto"),
        "words": ["dtdebug", "doctor", "--format", "json", "--token-stdin", "--wait", f"{wait:g}"],
        "command": list(command),
        "token": token,
        "limit": limit,
        "place": os.getcwd(),  # noqa: PTH109
    }
    python = interpreter(["ray", *command])
    child = subprocess.Popen(
        [python, "-c", _DRIVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        out, error = child.communicate(json.dumps(asked).encode() + b"\n", timeout=limit + 90)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        raise UsageError("doctor --via ray: the cluster did not answer") from None
    rows = [line.removeprefix(_MARK) for line in out.decode(errors="replace").splitlines() if line.startswith(_MARK)]
    if not rows:
        said = error.decode(errors="replace").strip().splitlines()
        raise UsageError(f"doctor --via ray: {one_line(said[-1], 200) if said else 'no node answers'}")
    found = [json.loads(row) for row in rows]
    return [(one_line(str(r["host"]), 100), str(r["out"]).encode(), one_line(str(r["error"]), 200)) for r in found]
