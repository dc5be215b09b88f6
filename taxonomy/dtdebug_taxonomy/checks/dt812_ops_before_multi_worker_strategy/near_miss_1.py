import tensorflow as tf


def load():
    return tf.data.Dataset.range(10)


def main(kind):
    if kind == "data":
        return load()
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    data = load()
    return strategy, data


main("train")
