"""Clients that launch, trace, query and stop for as long as is asked for, while memory, files and disk are watched: `python -m tests.soak --minutes 10`."""
