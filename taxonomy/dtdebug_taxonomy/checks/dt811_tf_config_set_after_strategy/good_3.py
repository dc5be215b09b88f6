import os

import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
os.environ["TF_CONFIG"] = "{}"
