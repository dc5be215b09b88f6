import horovod.tensorflow as hvd
import tensorflow as tf

hvd.init()
opt = hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.1, clipnorm=1.0))
grads, _ = tf.clip_by_global_norm([tf.constant(1.0)], 1.0)
