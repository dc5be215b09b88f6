"""Builds an extension that exchanges gradients with NCCL."""

from setuptools import Extension, setup

setup(
    name="fast-exchange",
    version="1.0",
    py_modules=[],
    ext_modules=[
        Extension(
            "fast_exchange",
            ["exchange.c"],
            include_dirs=["."],
        ),
    ],
)
