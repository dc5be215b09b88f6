for seed in 1 2 3; do echo $seed; done
torchrun --standalone --nproc-per-node=gpu -m program_2  # dt: DT909
