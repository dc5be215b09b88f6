export CUDA_VISIBLE_DEVICES="0,1,2"
accelerate launch --multi_gpu --num_processes 4 train.py  # dt: DT904
export CUDA_VISIBLE_DEVICES="0,1,2,3"
accelerate launch --multi_gpu --num_processes 4 train.py
