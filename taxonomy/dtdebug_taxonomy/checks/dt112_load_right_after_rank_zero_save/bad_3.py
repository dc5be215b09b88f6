from transformers import AutoModel


def reload(accelerator, model, folder):
    if accelerator.is_main_process:
        model.save_pretrained(folder)
    if not accelerator.is_main_process:
        model = AutoModel.from_pretrained(folder)  # dt: DT112
    return model
