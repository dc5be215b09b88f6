import os

import tensorflow as tf


def make(multi):
    if multi:
        return tf.distribute.MultiWorkerMirroredStrategy()
    os.environ["TF_CONFIG"] = ""
    return tf.distribute.MirroredStrategy()


print(os.environ["TF_CONFIG"])
