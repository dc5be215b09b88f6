import horovod.tensorflow.keras as hvd
import tensorflow as tf


def main():
    gpus = tf.config.list_physical_devices("GPU")
    if gpus:
        tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")  # dt: DT801
    opt = hvd.DistributedOptimizer(tf.keras.optimizers.Adam(0.001))
    return opt


if __name__ == "__main__":
    main()
