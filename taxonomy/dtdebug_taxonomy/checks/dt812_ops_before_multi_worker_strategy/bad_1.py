import tensorflow as tf

dataset = tf.data.Dataset.from_tensor_slices([1, 2, 3]).batch(2)
strategy = tf.distribute.MultiWorkerMirroredStrategy()  # dt: DT812
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
