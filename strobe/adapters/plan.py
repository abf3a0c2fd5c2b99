"""What a run of one of JavaScript's frameworks is to do."""

from __future__ import annotations

from dataclasses import dataclass

from strobe.adapters.adapter import Step
from strobe.adapters.wanted import Wanted


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run does: steps one after the other, the last of which runs the tests. `rerun`: what a rerun command begins with, a shell's text."""

    framework: str
    steps: tuple[Step, ...]
    wanted: Wanted
    rerun: str = ""
    options: tuple[str, ...] = ()  # of the project's script, for rerun commands
    is_foreign: bool = False  # a command whose tests may tell nothing
