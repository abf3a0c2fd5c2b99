"""What the spawner and its host (host.py) say to each other: (number, "warm" | "enter" | "prepare", argument) one way, (number, answer, wire form of a
StrobeError) the other, pickled."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, TypeAlias

Message: TypeAlias = tuple[int, Any, Any]


def read_all(connection: Connection, received: Callable[[Message | None], None]) -> None:
    """A thread's whole life: each message, and None at the end."""
    with suppress(EOFError, OSError):
        while True:
            received(connection.recv())
    received(None)
