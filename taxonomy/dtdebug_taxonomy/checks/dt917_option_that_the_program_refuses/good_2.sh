deepspeed --num_gpus=2 program_2.py --deepspeed --deepspeed_config ds.json
