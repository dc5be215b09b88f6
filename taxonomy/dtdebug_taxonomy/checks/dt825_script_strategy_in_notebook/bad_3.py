# %% [markdown]
# # Training on two GPUs
# %%
import lightning as L

NAME = "ddp_find_unused_parameters_true"
fabric = L.Fabric(accelerator="cuda", devices=2, strategy='ddp_find_unused_parameters_true')  # dt: DT825
# %%
trainer = L.Trainer(strategy=NAME)  # dt: DT825
