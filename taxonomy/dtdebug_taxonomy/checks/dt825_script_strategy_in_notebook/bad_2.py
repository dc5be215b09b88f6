from lightning.pytorch import Trainer
from lightning.pytorch.strategies import DDPStrategy, FSDPStrategy

get_ipython().run_line_magic("matplotlib", "inline")
strategy = DDPStrategy(find_unused_parameters=True)
trainer = Trainer(devices=2, strategy=strategy)  # dt: DT825
other = Trainer(
    devices=2,
    strategy=FSDPStrategy(),  # dt: DT825
)
