import horovod.tensorflow.keras as hvd
import tensorflow as tf


def main():
    hvd.init()
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    opt = hvd.DistributedOptimizer(tf.keras.optimizers.Adam(0.001 * hvd.size()))  # dt: DT802
    model.compile(optimizer=opt, loss="mse")
    model.fit([[1.0]], [[1.0]], callbacks=[hvd.callbacks.BroadcastGlobalVariablesCallback(0)])


if __name__ == "__main__":
    main()
