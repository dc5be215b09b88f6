import tensorflow as tf

FILES = ["gs://bucket/train.csv"]


def load():
    return tf.data.TextLineDataset(filenames=FILES)  # dt: DT815


def main():
    strategy = tf.distribute.experimental.MultiWorkerMirroredStrategy()
    return strategy.experimental_distribute_dataset(load())
