import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
task_id = strategy.cluster_resolver.task_id
model = tf.keras.Sequential()
model.save("model" if task_id == 0 else f"/tmp/{task_id}")
