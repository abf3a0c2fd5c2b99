"""Core dumps: what the kernel, or gdb's generate-core-file, saved of a process (core(5), elf(5))."""

from strobe.core.dump import Core
from strobe.core.notes import MappedFile, Thread

__all__ = ["Core", "MappedFile", "Thread"]
