from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM
from trl import SFTTrainer

DEVICES = "balanced"


def main():
    model = AutoModelForCausalLM.from_pretrained("gpt2", device_map=DEVICES, load_in_4bit=True)
    model = get_peft_model(model, LoraConfig())
    trainer = SFTTrainer(model, train_dataset=None)
    trainer.train()


if __name__ == "__main__":
    main()
