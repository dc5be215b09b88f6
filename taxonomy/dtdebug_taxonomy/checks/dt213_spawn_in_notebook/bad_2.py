# In[1]:
from torch import multiprocessing


# In[2]:
def worker(rank):
    print(rank)


# In[3]:
multiprocessing.spawn(fn=worker, nprocs=4)  # dt: DT213
