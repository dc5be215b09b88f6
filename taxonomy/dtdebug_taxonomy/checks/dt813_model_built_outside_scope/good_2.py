import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()


def build():
    with strategy.scope():
        return tf.keras.Sequential([tf.keras.layers.Dense(1)])


model = build()
with strategy.scope():
    model.compile(loss="mse")
