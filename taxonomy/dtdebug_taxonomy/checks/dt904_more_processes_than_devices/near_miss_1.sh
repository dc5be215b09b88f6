# every machine has two of the sixteen
export CUDA_VISIBLE_DEVICES=0,1
accelerate launch --num_machines 8 --num_processes 16 --machine_rank $RANK train.py
if [ -n "$DEBUG" ]; then
  export CUDA_VISIBLE_DEVICES=0
fi
torchrun --nproc_per_node 2 train.py
