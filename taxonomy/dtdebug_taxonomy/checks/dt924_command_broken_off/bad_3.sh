accelerate launch --num_processes 2 train.py \
    --epochs 3
    --lr 0.1  # dt: DT924
echo done
