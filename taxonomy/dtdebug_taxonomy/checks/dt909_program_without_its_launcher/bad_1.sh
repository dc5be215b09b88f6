#!/bin/bash
set -e
CUDA_VISIBLE_DEVICES=0,1 python program_1.py --epochs 10  # dt: DT909
