"""Strobe: a debugger that a language model drives. What every process shares."""

__version__ = "0.1.0"
