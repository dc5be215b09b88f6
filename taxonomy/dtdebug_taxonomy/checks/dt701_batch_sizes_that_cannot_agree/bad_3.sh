#!/bin/bash
cat <<EOT > ds_config.json
{
  "train_batch_size": 64,  // dt: DT701
  "train_micro_batch_size_per_gpu": 4,
  "gradient_accumulation_steps": 2,
  "zero_optimization": {"stage": 1}
}
EOT
deepspeed --num_gpus 4 train.py --deepspeed_config ds_config.json
