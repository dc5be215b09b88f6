import horovod.tensorflow as hvd
import tensorflow as tf

hvd.init()
(images, labels), _ = tf.keras.datasets.mnist.load_data(path="mnist-%d.npz" % hvd.rank())
