import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
several = tf.data.TFRecordDataset(["a", "b", "c", "d"])
table = tf.data.Dataset.from_tensor_slices(["one.tfrecord"])
