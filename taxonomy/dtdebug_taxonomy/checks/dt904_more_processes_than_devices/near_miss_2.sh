#!/bin/bash
# the file names the devices itself, one process on the CPU, and a file that is not here
CUDA_VISIBLE_DEVICES=0,1 accelerate launch --config_file config_2.yaml train.py
CUDA_VISIBLE_DEVICES=0,1 accelerate launch --cpu --config_file config_1.yaml train.py
CUDA_VISIBLE_DEVICES=0,1 accelerate launch --config_file config_9.yaml train.py
