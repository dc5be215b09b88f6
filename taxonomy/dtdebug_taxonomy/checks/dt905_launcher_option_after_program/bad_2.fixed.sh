#!/bin/bash
accelerate launch \
  --num_processes=4 examples/finetune.py \
  --lr 1e-4  # dt: DT905
deepspeed --num_gpus 2 --hostfile hosts src/train.py --deepspeed ds_config.json  # dt: DT905
