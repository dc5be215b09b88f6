import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
files = tf.io.gfile.glob("train-*.tfrecord")
dataset = tf.data.TFRecordDataset(files)
