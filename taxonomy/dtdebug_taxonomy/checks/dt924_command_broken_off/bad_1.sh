torchrun --nproc_per_node 8 train.py \
    --use_reentrant True \ 
    --lr 1e-4  # dt: DT924
