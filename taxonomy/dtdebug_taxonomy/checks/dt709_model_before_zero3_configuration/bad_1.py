import deepspeed
from transformers import AutoModelForCausalLM
from transformers.integrations import HfDeepSpeedConfig

model = AutoModelForCausalLM.from_pretrained("gpt2-xl")
dschf = HfDeepSpeedConfig(ds_config)  # dt: DT709
engine = deepspeed.initialize(model=model, config_params=ds_config)[0]
