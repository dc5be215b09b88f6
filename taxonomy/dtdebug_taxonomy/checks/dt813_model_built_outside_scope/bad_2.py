import tensorflow as tf
from tensorflow import keras


def build_model(width):
    inputs = keras.Input((2,))
    return keras.Model(inputs, keras.layers.Dense(width)(inputs))


class Trainer:
    def __init__(self, args):
        self.strategy = tf.distribute.experimental.MultiWorkerMirroredStrategy()
        self.args = args

    def run(self, data):
        net = build_model(self.args.width)  # dt: DT813
        optimizer = keras.optimizers.Adam()
        with self.strategy.scope():
            net.compile(optimizer=optimizer, loss="mse")
        net.fit(data)
