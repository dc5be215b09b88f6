from transformers.integrations import HfDeepSpeedConfig


def keep(config):
    return HfDeepSpeedConfig(config)
