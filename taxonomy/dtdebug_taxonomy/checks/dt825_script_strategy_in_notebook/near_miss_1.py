# %% [markdown]
# # Training on two GPUs
# %%
from lightning.pytorch import Trainer
from transformers import Trainer as HfTrainer

automatic = Trainer(strategy="auto", devices=2)
other = HfTrainer(strategy="ddp")
print("strategy", "ddp")
