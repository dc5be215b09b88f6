deepspeed --num_gpus=2 --hostfile hosts train.py --deepspeed --deepspeed_config ds.json
accelerate launch --config_file fsdp.yaml train.py --mixed_precision bf16 --gradient_accumulation_steps 4
