import tensorflow as tf

x = tf.constant(1)
strategy = tf.distribute.MirroredStrategy()
