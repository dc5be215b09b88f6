# In[1]:
import torch.multiprocessing as mp

from my_training import train

mp.spawn(train, nprocs=2)
