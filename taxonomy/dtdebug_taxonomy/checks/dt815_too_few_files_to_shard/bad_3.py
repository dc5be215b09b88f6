from tensorflow import data, distribute


class Input:
    path = "a.tfrecord"

    def __init__(self):
        self.strategy = distribute.MultiWorkerMirroredStrategy()
        name = "b.tfrecord"
        self.train = data.TFRecordDataset([name])  # dt: DT815
        self.test = data.TFRecordDataset(name)  # dt: DT815
