import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)
args, rest = parser.parse_known_args()
