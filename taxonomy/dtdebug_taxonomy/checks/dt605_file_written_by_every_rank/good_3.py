import json


def main(args):
    with open(args.output, "w") as file:
        json.dump(vars(args), file)
