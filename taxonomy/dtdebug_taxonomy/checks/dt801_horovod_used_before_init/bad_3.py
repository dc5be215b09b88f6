import argparse

from horovod import torch as hvd

verbose = hvd.rank() == 0  # dt: DT801


def main(args):
    hvd.init()
    if verbose:
        print(args, hvd.size())


if __name__ == "__main__":
    main(argparse.Namespace())
