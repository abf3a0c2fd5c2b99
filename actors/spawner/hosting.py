"""The actor's side of the process with Frida in it: starts it, asks it, replaces one that died or no longer answers."""

from __future__ import annotations

import asyncio
import importlib
import itertools
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import traceback
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final, TypeAlias

from actors.spawner.link import Message, read_all
from strobe.errors import Code, StrobeError
from strobe.protocol.spawner import Enter, Prepare, PrepareReply
from strobe.runtime.child import Child
from strobe.runtime.title import set_title, title_room

HOST: Final = "actors.spawner.host"  # not imported here: Frida starts threads
ANSWER_S: Final = 90.0  # everything it does is bounded: one that takes longer hangs
CLOSE_S: Final = 6.0  # for a visit in hand


Started: TypeAlias = tuple[Child | subprocess.Popen[bytes], socket.socket]


def fork_host(scratch: Path) -> Started | None:
    """The first host, without starting an interpreter. Only while nothing runs in this process yet, and where there is room for the title by which
    others know a host."""
    ours, theirs = socket.socketpair()
    words = _command(theirs, scratch)
    if len(os.listdir("/proc/self/task")) > 1 or title_room() <= sum(len(word.encode()) + 1 for word in words):  # noqa: PTH208
        ours.close()
        theirs.close()
        return None
    pid = os.fork()
    if pid:
        theirs.close()
        return Child(pid), ours
    try:
        ours.close()
        os.setsid()
        set_title(*words)
        with Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), 1)
        importlib.import_module(HOST).main(words[-2:])
    except BaseException:  # noqa: BLE001 (as the interpreter does)
        traceback.print_exc()
    os._exit(1)


def _start_host(scratch: Path) -> Started:
    ours, theirs = socket.socketpair()
    with theirs:  # a session of its own: what kills the actor's group leaves it
        command = _command(theirs, scratch)
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, pass_fds=[theirs.fileno()], start_new_session=True), ours


def _command(theirs: socket.socket, scratch: Path) -> list[str]:
    return [sys.executable, "-P", "-m", HOST, str(theirs.fileno()), str(scratch)]


class Hosting:
    """`scratch`: in which the host makes a temporary folder of its own. `forked`: the first host."""

    def __init__(self, scratch: Path, forked: Started | None = None) -> None:
        self._scratch = scratch
        self._host = _Host(scratch, forked) if forked is not None else None

    @property
    def pid(self) -> int | None:
        return self._host.process.pid if self._host is not None else None

    async def warm(self) -> None:
        """Before there is a target. Errors: FRIDA_ATTACH_FAILED."""
        await self._ask("warm", None)

    async def enter(self, ask: Enter) -> None:
        await self._ask("enter", ask)

    async def prepare(self, ask: Prepare) -> PrepareReply:
        reply: PrepareReply = await self._ask("prepare", ask)
        return reply

    async def close(self) -> None:
        """It finishes what it is at."""
        if self._host is not None:
            host, self._host = self._host, None
            await asyncio.to_thread(host.close)

    async def _ask(self, method: str, argument: Any) -> Any:
        if self._host is None:
            self._host = _Host(self._scratch, _start_host(self._scratch))
        host = self._host
        try:
            async with asyncio.timeout(ANSWER_S):
                return await host.ask(method, argument)
        except (OSError, EOFError, TimeoutError) as error:
            if self._host is host:
                self._host = None
            code = await asyncio.to_thread(host.end)
            how = signal.Signals(-code).name if code < 0 else f"exit status {code}"
            late = f"did not answer in {ANSWER_S:g} s" if isinstance(error, TimeoutError) else f"ended ({how})"
            raise StrobeError(Code.FRIDA_ATTACH_FAILED, f"The process with Frida in it {late}.", "Try again: another one is started.") from error


class _Host:
    def __init__(self, scratch: Path, started: Started) -> None:
        self.process, self._link = started
        self._connection = Connection(os.dup(self._link.fileno()))
        self._folder = scratch / f"host-{self.process.pid}"
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._numbers = itertools.count()
        self._sending = asyncio.Lock()
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=read_all, args=(self._connection, self._from_thread), daemon=True)
        self._thread.start()

    async def ask(self, method: str, argument: Any) -> Any:
        """Errors: EOFError when it ends first."""
        number = next(self._numbers)
        answer = self._waiting[number] = self._loop.create_future()
        try:
            async with self._sending:
                await asyncio.to_thread(self._connection.send, (number, method, argument))
            return await answer
        finally:
            del self._waiting[number]

    def close(self) -> None:
        self._link.shutdown(socket.SHUT_WR)
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(CLOSE_S)
        self.end()

    def end(self) -> int:
        """Kills it where it has not ended by itself, and clears its folder away. Its exit code."""
        self.process.kill()
        code = self.process.wait()
        self._thread.join()
        self._connection.close()
        self._link.close()
        shutil.rmtree(self._folder, ignore_errors=True)
        return code

    def _from_thread(self, message: Message | None) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(self._received, message)

    def _received(self, message: Message | None) -> None:
        if message is None:
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_exception(EOFError())
            return
        number, reply, error = message
        waiting = self._waiting.get(number)
        if waiting is None or waiting.done():
            return  # its asker gave up
        if error is None:
            waiting.set_result(reply)
        else:
            waiting.set_exception(StrobeError.from_wire(error))
