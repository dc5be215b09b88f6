from lightning.pytorch.strategies import DDPStrategy

strategy = DDPStrategy(find_unused_parameters=False)
