from lightning.pytorch import Trainer
from lightning.pytorch.strategies import DDPStrategy

get_ipython().run_line_magic("load_ext", "autoreload")
trainer = Trainer(devices=2, strategy=DDPStrategy(start_method="fork"))
single = Trainer(accelerator="gpu", devices=1)
