import yaml

TEXT = """
optimizer:
  name: adamw
  learning_rate: 0.001
model:
  width: 64
"""


def optimizer_of(config):
    part = config["optimizer"]
    return part["name"], part["lr"]


config = yaml.safe_load(TEXT)
print(optimizer_of(config))
