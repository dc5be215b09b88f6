import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
dataset = tf.data.TFRecordDataset("train.tfrecord")
