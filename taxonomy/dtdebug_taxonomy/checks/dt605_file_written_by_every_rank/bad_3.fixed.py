from accelerate import Accelerator
from transformers import AutoTokenizer


class Trainer:
    def __init__(self, args):
        self.accelerator = Accelerator()
        self.tokenizer = AutoTokenizer.from_pretrained(args.model)
        if self.accelerator.is_main_process:
            self.tokenizer.save_pretrained(args.output_dir)  # dt: DT605
        if self.accelerator.is_main_process:
            print("ready")
