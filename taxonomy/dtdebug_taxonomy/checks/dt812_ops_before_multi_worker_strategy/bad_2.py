import tensorflow as tf


def load():
    x = tf.random.normal((10, 2))
    return tf.data.Dataset.from_tensors(x)


def main():
    data = load()
    strategy = tf.distribute.experimental.MultiWorkerMirroredStrategy()  # dt: DT812
    return data, strategy


if __name__ == "__main__":
    main()
