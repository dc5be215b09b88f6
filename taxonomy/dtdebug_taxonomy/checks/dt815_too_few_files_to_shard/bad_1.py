import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
dataset = tf.data.TFRecordDataset("train.tfrecord").batch(32)  # dt: DT815
