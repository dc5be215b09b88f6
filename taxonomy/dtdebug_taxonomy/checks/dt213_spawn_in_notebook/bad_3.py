# Databricks notebook source
import multiprocessing as mp

# COMMAND ----------


def run(rank):
    print(rank)


context = mp.get_context("spawn")
workers = [context.Process(target=run, args=(r,)) for r in range(2)]  # dt: DT213
for w in workers:
    w.start()
