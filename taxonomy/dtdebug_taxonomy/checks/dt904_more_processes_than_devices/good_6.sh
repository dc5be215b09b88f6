#!/bin/bash
CUDA_VISIBLE_DEVICES=0,1 accelerate launch --config_file config_1.yaml --num_processes 2 train.py
CUDA_VISIBLE_DEVICES=4,5,6,7 accelerate launch --config_file config_1.yaml train.py
