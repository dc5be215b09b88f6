import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
dataset = tf.data.Dataset.from_tensor_slices([1, 2, 3]).batch(2)
