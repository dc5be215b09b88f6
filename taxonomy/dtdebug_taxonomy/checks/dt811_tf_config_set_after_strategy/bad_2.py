import argparse
import os

from tensorflow import distribute


def make_strategy():
    return distribute.experimental.MultiWorkerMirroredStrategy()


def main():
    args = argparse.ArgumentParser().parse_args()
    strategy = make_strategy()
    os.environ.update({"TF_CONFIG": args.tf_config, "X": "1"})  # dt: DT811
    return strategy


if __name__ == "__main__":
    main()
