import transformers
from transformers.integrations import deepspeed as hf_deepspeed


class Runner:
    def __init__(self, cfg):
        config = transformers.AutoConfig.from_pretrained(cfg.name)
        with open(cfg.ds) as file:
            ds_config = file.read()
        self.model = transformers.AutoModel.from_config(config)
        if cfg.zero == 3:
            self.dschf = hf_deepspeed.HfDeepSpeedConfig(ds_config)  # dt: DT709
