import horovod.tensorflow as hvd
import tensorflow as tf


def average(x):
    return hvd.allreduce(x)


def start():
    hvd.init()
    print(tf.__version__, hvd.rank())


start()
