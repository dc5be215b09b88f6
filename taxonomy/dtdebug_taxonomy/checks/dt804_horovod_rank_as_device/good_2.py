import horovod.tensorflow as hvd
import tensorflow as tf

hvd.init()
gpus = tf.config.list_physical_devices("GPU")
tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")
shard = tf.data.Dataset.range(10).shard(hvd.size(), hvd.rank())
files = ["a", "b"][hvd.rank()]
