import torch
import torch.multiprocessing as mp


def run(rank, size):
    print(rank, size)


world_size = torch.cuda.device_count()
context = mp.spawn(  # dt: DT214
    run,
    args=(world_size,),
    nprocs=world_size,
    join=False,
)
mp.set_start_method("spawn")
process = mp.Process(target=run, args=(0, 1))  # dt: DT214
