"""Bounds of the product made smaller in a test's own processes: `STROBE_TEST_TIMES="module.NAME=number …"`, read by the echo node and its actor."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Final

VARIABLE: Final = "STROBE_TEST_TIMES"


def times(**bounds: float) -> str:
    """The variable's value; in names `__` stands for the dot: `strobe__supervisor__nursery__HUNG_S=4`."""
    return " ".join(f"{name.replace('__', '.')}={bound}" for name, bound in bounds.items())


def shorten() -> None:
    for item in os.environ.get(VARIABLE, "").split():
        name, _, bound = item.partition("=")
        place, _, constant = name.rpartition(".")
        module = import_module(place)
        assert float(bound) < getattr(module, constant), f"{name} is {getattr(module, constant)} already"
        setattr(module, constant, float(bound))
