import horovod.tensorflow as hvd
import tensorflow as tf

hvd.init()
config = tf.compat.v1.ConfigProto()
config.gpu_options.visible_device_list = str(hvd.local_rank())  # dt: DT804
options = tf.compat.v1.GPUOptions(visible_device_list=str(hvd.local_rank()))  # dt: DT804
gpus = tf.config.experimental.list_physical_devices("GPU")
if gpus:
    tf.config.experimental.set_visible_devices(gpus[hvd.local_rank()], "GPU")  # dt: DT804
