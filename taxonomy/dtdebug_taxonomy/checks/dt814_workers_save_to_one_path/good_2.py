import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
model = tf.keras.Sequential()
model.save("model")
