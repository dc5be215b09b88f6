CUDA_VISIBLE_DEVICES=0,1 accelerate launch --multi_gpu train.py
CUDA_VISIBLE_DEVICES=0 accelerate launch train.py
