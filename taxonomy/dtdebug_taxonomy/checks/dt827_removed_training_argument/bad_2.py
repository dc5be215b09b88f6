import transformers


def arguments(output):
    return transformers.Seq2SeqTrainingArguments(
        output_dir=output,
        sharded_ddp="simple",  # dt: DT827
        fsdp_min_num_params=2000,  # dt: DT827
    )
