import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])  # dt: DT813
with strategy.scope():
    model.compile(optimizer="adam", loss="mse")
model.fit([[1.0]], [[1.0]])
