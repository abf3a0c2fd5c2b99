"""The process with Frida in it: `python -P -m actors.spawner.host FD FOLDER`, started by the spawner (hosting.py).

Frida works in a target by ptrace, and keeps the registers of the thread it has borrowed in memory of its own: a host that is killed just then leaves
that thread running nowhere (9 of 30 targets died of it). Actors may be killed at any moment, so Frida is not in one. When its actor has gone, this
process finishes what it is at, leaves the target as it would have, and ends. Like the keeper it does nothing else.
"""

from __future__ import annotations

import asyncio
import ctypes
import faulthandler
import os
import shutil
import signal
import sys
import tempfile
import threading
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

from actors.spawner.injector import Injector
from actors.spawner.link import Message, read_all
from strobe.artifacts import artifact
from strobe.errors import StrobeError

PR_SET_NAME: Final = 15


class Host:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._injector = Injector(artifact("strobe-recorder.so"), artifact("agent.js"))
        self._over = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._failed: list[asyncio.Task[None]] = []

    async def serve(self) -> None:
        loop = asyncio.get_running_loop()
        threading.Thread(target=read_all, args=(self._connection, lambda message: loop.call_soon_threadsafe(self._received, message)), daemon=True).start()
        await self._over.wait()
        failed = [one for one in await asyncio.gather(*self._tasks, *self._failed, return_exceptions=True) if one is not None]
        await self._injector.close()
        if failed:
            raise failed[0]

    def _received(self, message: Message | None) -> None:
        if message is None:
            self._over.set()
            return
        task = asyncio.get_running_loop().create_task(self._answer(*message))
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task.exception() is not None:
            self._failed.append(task)

    async def _answer(self, number: int, method: str, argument: Any) -> None:
        answer, error = None, None
        try:
            match method:
                case "warm":
                    await self._injector.warm()
                case "enter":
                    await self._injector.enter(argument)
                case "prepare":
                    answer = await self._injector.prepare(argument)
        except StrobeError as found:
            error = found.to_wire()
        except BaseException:
            self._over.set()  # a fault of ours: no more than what is in hand, and then another process
            raise
        with suppress(OSError):  # nobody wants to know any more
            self._connection.send((number, answer, error))


def main(arguments: list[str]) -> None:
    faulthandler.enable()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # it ends with its actor, in its own time
        signal.signal(number, signal.SIG_IGN)
    ctypes.CDLL(None).prctl(PR_SET_NAME, b"strobe-host", 0, 0, 0)
    folder = Path(arguments[1]) / f"host-{os.getpid()}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
    try:
        asyncio.run(Host(Connection(int(arguments[0]))).serve())
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)  # as in strobe.runtime.main


if __name__ == "__main__":
    main(sys.argv[1:])
