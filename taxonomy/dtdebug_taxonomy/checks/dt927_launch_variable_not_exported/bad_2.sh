#!/bin/bash
CUDA_VISIBLE_DEVICES=2,3  # dt: DT927
python train.py
