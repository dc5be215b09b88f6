from transformers import TrainingArguments as TA

args = TA(output_dir="out", no_cuda=True)  # dt: DT827
