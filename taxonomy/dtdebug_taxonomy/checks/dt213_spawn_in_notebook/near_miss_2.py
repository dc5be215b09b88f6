# In[1]:
"""
src/spawned.py
"""

import torch.multiprocessing as mp


def work(rank):
    print(rank)


if __name__ == "__main__":
    mp.spawn(work, nprocs=4)
