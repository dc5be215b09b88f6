import torch.distributed as dist
from accelerate import Accelerator, DeepSpeedPlugin
from transformers import AutoModelForCausalLM, AutoTokenizer

accelerator = Accelerator(deepspeed_plugin=DeepSpeedPlugin(zero_stage=3))
with accelerator.main_process_first():
    tokenizer = AutoTokenizer.from_pretrained("gpt2")
    model = AutoModelForCausalLM.from_pretrained("gpt2")  # dt: DT103
with accelerator.local_main_process_first():
    dist.barrier()  # dt: DT103
