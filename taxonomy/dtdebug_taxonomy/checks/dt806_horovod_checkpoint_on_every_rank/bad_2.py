import horovod.tensorflow.keras as hvd
import tensorflow as tf


def main():
    hvd.init()
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    callbacks = [
        hvd.callbacks.BroadcastGlobalVariablesCallback(0),
        tf.keras.callbacks.ModelCheckpoint("./checkpoint-{epoch}.h5"),  # dt: DT806
    ]
    model.fit([[1.0]], [[1.0]], callbacks=callbacks)
    model.save_weights("final.h5")  # dt: DT806


if __name__ == "__main__":
    main()
