for option in a b; do
    CUDA_VISIBLE_DEVICES=0 accelerate launch --multi_gpu --main_process_port 41001 --num_machines 1 train.py $option  # dt: DT904
done
