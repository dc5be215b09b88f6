import deepspeed
from transformers import T5ForConditionalGeneration
from transformers.deepspeed import HfDeepSpeedConfig


def load(name, ds_config):
    dschf = HfDeepSpeedConfig(ds_config)  # dt: DT709
    model = T5ForConditionalGeneration.from_pretrained(name)
    return deepspeed.initialize(model=model, config=ds_config)[0]
