import tensorflow as tf


class Trainer:
    def __init__(self):
        self.strategy = tf.distribute.MultiWorkerMirroredStrategy()
        self.model = None

    def finish(self):
        tf.saved_model.save(self.model, "/data/export")  # dt: DT814


if __name__ == "__main__":
    Trainer().finish()
