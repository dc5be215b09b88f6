import tensorflow
from tensorflow.distribute import MultiWorkerMirroredStrategy as Strategy

STEP = tensorflow.Variable(0)


class Trainer:
    def __init__(self):
        self.strategy = Strategy()  # dt: DT812


Trainer()
