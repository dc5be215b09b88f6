# Databricks notebook source
from pyspark.ml.torch.distributor import TorchDistributor


def train(devices):
    import pytorch_lightning as pl

    trainer = pl.Trainer(max_epochs=2, devices=devices, strategy="ddp")
    return trainer.max_epochs


# COMMAND ----------
TorchDistributor(num_processes=4, local_mode=True, use_gpu=True).run(train, 4)
