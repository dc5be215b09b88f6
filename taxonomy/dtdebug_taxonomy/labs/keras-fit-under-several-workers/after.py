"""Two workers of TensorFlow on this host train one small Keras model."""

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
    import numpy as np
    import tensorflow as tf

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    index = strategy.cluster_resolver.task_id
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(1)])
        model.compile("sgd", "mse")
    data = tf.data.Dataset.from_tensor_slices((np.ones((64, 4), "f"), np.ones((64, 1), "f"))).batch(16)

    def one(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
        weights = model.trainable_variables
        for weight, gradient in zip(weights, tape.gradient(loss, weights)):
            context = tf.distribute.get_replica_context()
            weight.assign_sub(0.05 * context.all_reduce("MEAN", gradient))

    step = tf.function(lambda batch: strategy.run(one, args=batch))
    for batch in strategy.experimental_distribute_dataset(data.repeat(2)):
        step(batch)
    print(f"worker {index} is trained", flush=True)


if __name__ == "__main__":
    sys.exit(start_workers() if "TF_CONFIG" not in os.environ else train())
