# In[1]:
from torch import multiprocessing


# In[2]:
def worker(rank):
    print(rank)


# In[3]:
multiprocessing.start_processes(fn=worker, nprocs=4, start_method="fork")  # dt: DT213
