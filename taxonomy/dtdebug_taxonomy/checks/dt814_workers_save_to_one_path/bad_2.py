import argparse

import tensorflow as tf


def main(args):
    strategy = tf.distribute.experimental.MultiWorkerMirroredStrategy()
    with strategy.scope():
        net = tf.keras.applications.ResNet50()
    net.fit(None)
    net.save_weights(args.out)  # dt: DT814


if __name__ == "__main__":
    main(argparse.Namespace(out="w.h5"))
