# In[1]:
import torch.multiprocessing as mp


def train(rank):
    print(rank)


mp.start_processes(train, nprocs=2, start_method="fork")
