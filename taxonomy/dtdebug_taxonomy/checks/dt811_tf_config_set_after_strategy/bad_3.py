import json
import os

import tensorflow as tf


class Worker:
    def __init__(self, hosts, index):
        resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
        cluster = {"worker": hosts}
        if index is not None:
            os.environ.setdefault("TF_CONFIG", json.dumps({"cluster": cluster, "index": index}))  # dt: DT811
        self.strategy = tf.distribute.MultiWorkerMirroredStrategy(cluster_resolver=resolver)
