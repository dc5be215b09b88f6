import horovod.tensorflow as hvd
import tensorflow as tf

hvd.init()
opt = hvd.DistributedOptimizer(tf.compat.v1.train.AdamOptimizer(0.1))
with tf.compat.v1.train.MonitoredTrainingSession(hooks=[hvd.BroadcastGlobalVariablesHook(0)]) as s:
    s.run(opt)
