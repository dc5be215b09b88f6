cat <<EOT > ds_config.json
{
  "train_batch_size": $GLOBAL,
  "train_micro_batch_size_per_gpu": 4,
  "zero_optimization": {"stage": 1}
}
EOT
deepspeed --num_gpus 4 train.py
