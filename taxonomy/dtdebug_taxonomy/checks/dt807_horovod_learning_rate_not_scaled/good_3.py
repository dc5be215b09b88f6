import horovod.tensorflow.keras as hvd
import tensorflow as tf

hvd.init()
opt = hvd.DistributedOptimizer(tf.keras.optimizers.Adam(0.001))
callbacks = [hvd.callbacks.LearningRateWarmupCallback(initial_lr=0.001, warmup_epochs=3)]
