from transformers import AutoConfig, AutoModel
from transformers.deepspeed import HfDeepSpeedConfig


def create(name, ds_config=None):
    config = AutoConfig.from_pretrained(name)
    if ds_config is not None and ds_config["zero_optimization"]["stage"] == 3:
        dschf = HfDeepSpeedConfig(ds_config)
    else:
        dschf = None
    return AutoModel.from_pretrained(name, config=config), dschf
