#!/bin/bash
accelerate launch \
  examples/finetune.py \
  --lr 1e-4 --num_processes=4  # dt: DT905
deepspeed src/train.py --deepspeed ds_config.json --num_gpus 2 --hostfile hosts  # dt: DT905
