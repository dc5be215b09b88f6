import json
import os

import tensorflow as tf

os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": ["a:1", "b:1"]}})
strategy = tf.distribute.MultiWorkerMirroredStrategy()
