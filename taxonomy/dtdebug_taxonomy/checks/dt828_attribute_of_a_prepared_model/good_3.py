from accelerate import Accelerator


def main(model, optimizer, path):
    accelerator = Accelerator()
    model, optimizer = accelerator.prepare(model, optimizer)
    model = accelerator.unwrap_model(model)
    model.save_pretrained(path)
