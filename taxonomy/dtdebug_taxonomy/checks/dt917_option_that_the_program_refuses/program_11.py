import argparse


def model_options(parser):
    group = parser.add_argument_group("model")
    group.add_argument("--hidden-size", type=int, default=256)
    return parser


def get_parser():
    parser = argparse.ArgumentParser("train")
    parser.add_argument("--epochs", type=int, default=10)
    parser = model_options(parser)
    return parser


def get_args():
    return get_parser().parse_args()
