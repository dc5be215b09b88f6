CUDA_VISIBLE_DEVICES=0,1 python train.py \
    --epochs 3 \
    # --fp16 \
    --lr 0.1  # dt: DT924
