import horovod.tensorflow.keras as hvd
import tensorflow as tf


def main():
    hvd.init()
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    opt = hvd.DistributedOptimizer(tf.keras.optimizers.Adam(0.001 * hvd.size()))  # dt: DT803
    model.compile(optimizer=opt, loss="mse")
    callbacks = [hvd.callbacks.MetricAverageCallback()]
    model.fit([[1.0]], [[1.0]], callbacks=callbacks)


if __name__ == "__main__":
    main()
