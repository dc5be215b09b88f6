from transformers import AutoModel
from transformers.integrations import HfDeepSpeedConfig


def reward(name):
    return AutoModel.from_pretrained(name)


def actor(name, config):
    if config is None:
        return AutoModel.from_pretrained(name)
    dschf = HfDeepSpeedConfig(config)
    return AutoModel.from_pretrained(name)
