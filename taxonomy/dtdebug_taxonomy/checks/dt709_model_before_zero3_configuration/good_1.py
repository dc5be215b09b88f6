from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.integrations import HfDeepSpeedConfig

tokenizer = AutoTokenizer.from_pretrained("gpt2")
dschf = HfDeepSpeedConfig(ds_config)
model = AutoModelForCausalLM.from_pretrained("gpt2")
