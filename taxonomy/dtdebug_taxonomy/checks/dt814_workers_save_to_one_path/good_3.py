import tensorflow as tf


def write_path(path, chief):
    return path if chief else path + "_tmp"


strategy = tf.distribute.MultiWorkerMirroredStrategy()
model = tf.keras.Sequential()
model.save(write_path("m", True))
