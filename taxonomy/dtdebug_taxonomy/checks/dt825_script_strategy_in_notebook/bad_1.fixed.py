# Databricks notebook source
import pytorch_lightning as pl

# COMMAND ----------

trainer = pl.Trainer(max_epochs=2, devices=2, strategy="ddp_notebook")  # dt: DT825
