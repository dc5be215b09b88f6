#!/bin/bash
# Write the number of your GPUs here.
WORLD_SIZE=NUM_OF_GPUS
export MASTER_PORT=YOUR_PORT
update_freq=$((64 / $WORLD_SIZE))
torchrun --nproc_per_node=$WORLD_SIZE train.py --update-freq $update_freq
