import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
model = tf.keras.Sequential()
history = model.fit([[1.0]], [[1.0]])
figure = history.history
figure.save("loss.png")
