# %% [markdown]
# # With Accelerate
from accelerate import notebook_launcher


def train():
    print("trains")


notebook_launcher(train, num_processes=2)
