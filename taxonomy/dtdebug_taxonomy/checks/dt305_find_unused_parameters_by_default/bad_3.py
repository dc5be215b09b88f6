from lightning.pytorch import Trainer
from lightning.pytorch.strategies import DDPStrategy

trainer = Trainer(
    devices=4,
    strategy=DDPStrategy(
        find_unused_parameters=True,  # dt: DT305
    ),
)
