import horovod.keras as hvd
from tensorflow import keras


def main(args):
    hvd.init()
    opt = hvd.DistributedOptimizer(keras.optimizers.Adam(learning_rate=args.lr))  # dt: DT807
    return opt, [hvd.callbacks.BroadcastGlobalVariablesCallback(0)]


if __name__ == "__main__":
    main(None)
