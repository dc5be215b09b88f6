#!/bin/bash
export CUDA_VISIBLE_DEVICES=0,1
accelerate launch --config_file config_1.yaml train.py --epochs 3  # dt: DT904
