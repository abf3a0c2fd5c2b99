"""What a program is, found out from its file before anyone touches it."""

from strobe.preflight.facts import FileKind, Preflight
from strobe.preflight.inspection import inspect_file, inspect_process

inspect = inspect_file

__all__ = ["FileKind", "Preflight", "inspect", "inspect_file", "inspect_process"]
