#!/usr/bin/env python
"""Trains with Accelerate."""
from __future__ import annotations

import argparse
from accelerate import Accelerator, InitProcessGroupKwargs


def main(args):
    handler = InitProcessGroupKwargs(timeout=args.timeout)  # dt: DT209
    return Accelerator(kwargs_handlers=[handler])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--timeout", type=int, default=1800)
    main(parser.parse_args())
