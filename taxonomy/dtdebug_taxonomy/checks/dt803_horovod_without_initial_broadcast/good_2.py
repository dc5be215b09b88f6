import horovod.keras as hvd
import keras
from horovod.keras.callbacks import BroadcastGlobalVariablesCallback

hvd.init()
opt = hvd.DistributedOptimizer(keras.optimizers.SGD(0.1))
callbacks = [BroadcastGlobalVariablesCallback(0)]
