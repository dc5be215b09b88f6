import horovod.tensorflow as hvd
import tensorflow as tf

hvd.init()
opt = tf.keras.optimizers.SGD(0.1)
with tf.GradientTape() as tape:
    loss = tf.constant(1.0)
tape = hvd.DistributedGradientTape(tape)
opt.apply_gradients(zip(tape.gradient(loss, []), []))
