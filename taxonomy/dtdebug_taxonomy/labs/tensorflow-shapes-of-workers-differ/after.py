"""Two workers of TensorFlow on this host sum the errors of their samples; the second has fewer samples."""

import json
import os
import socket
import subprocess
import sys


def start_workers() -> int:
    """Starts this file once for each worker; what TF_CONFIG says differs in the index alone."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    workers = [f"127.0.0.1:{server.getsockname()[1]}" for server in held]
    for server in held:
        server.close()
    tasks = [{"cluster": {"worker": workers}, "task": {"type": "worker", "index": i}} for i in range(2)]
    running = [
        subprocess.Popen([sys.executable, __file__], env={**os.environ, "TF_CONFIG": json.dumps(task)})
        for task in tasks
    ]
    return max(worker.wait() for worker in running)


def train() -> None:
    import tensorflow as tf

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    index = strategy.cluster_resolver.task_id
    errors = tf.ones((8 - 3 * index,))
    errors = tf.reduce_sum(errors)

    @tf.function
    def step():
        return strategy.run(lambda: tf.distribute.get_replica_context().all_reduce("SUM", errors))

    total = tf.reduce_sum(step())
    if index == 0:
        print(f"the sum is {total.numpy():g}", flush=True)


if __name__ == "__main__":
    sys.exit(start_workers() if "TF_CONFIG" not in os.environ else train())
