accelerate launch --use_deepspeed --zero_stage 2 --offload_param_device cpu train.py  # dt: DT705
