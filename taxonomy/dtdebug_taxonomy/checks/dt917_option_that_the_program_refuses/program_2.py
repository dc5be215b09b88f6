import argparse

import deepspeed


def get_args():
    parser = argparse.ArgumentParser()
    group = parser.add_argument_group("training")
    group.add_argument("--local_rank", type=int, default=-1)
    parser = deepspeed.add_config_arguments(parser)
    return parser.parse_args()


args = get_args()
