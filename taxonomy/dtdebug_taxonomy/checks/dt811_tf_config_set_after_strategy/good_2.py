import json
import os

import tensorflow as tf


def set_cluster(hosts):
    os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": hosts}})


def main():
    set_cluster(["a:1"])
    return tf.distribute.MultiWorkerMirroredStrategy()


main()
