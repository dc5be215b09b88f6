import tensorflow as tf

from trainer import train

strategy = tf.distribute.MirroredStrategy()
baseline = tf.keras.Sequential([tf.keras.layers.Dense(1)])
baseline.compile(loss="mse")
baseline.fit([[1.0]], [[1.0]])
train(strategy)
