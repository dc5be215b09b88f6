export NPROC_PER_NODE=8
CUDA_VISIBLE_DEVICES=0,1 swift sft --model base
