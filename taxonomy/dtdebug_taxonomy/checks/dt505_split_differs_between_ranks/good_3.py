import pytorch_lightning as pl
from torch.utils.data import random_split

train, test = random_split(list(range(10)), [8, 2])
trainer = pl.Trainer(max_epochs=3)
