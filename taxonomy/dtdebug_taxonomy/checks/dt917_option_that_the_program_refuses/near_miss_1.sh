torchrun --nproc-per-node=2 program_1.py $EXTRA --$NAME 3 -- --other
deepspeed --hostfile hosts --launcher OpenMPI program_1.py
