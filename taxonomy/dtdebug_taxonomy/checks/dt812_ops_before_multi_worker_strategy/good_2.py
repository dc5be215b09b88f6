import tensorflow as tf

tf.config.set_soft_device_placement(True)
tf.random.set_seed(1)
gpus = tf.config.list_physical_devices("GPU")
(x, y), _ = tf.keras.datasets.mnist.load_data()
strategy = tf.distribute.MultiWorkerMirroredStrategy()
