#!/bin/bash
export CUDA_VISIBLE_DEVICES=0,1
accelerate launch --config_file config_1.yaml --num_processes 2 train.py --epochs 3  # dt: DT904
