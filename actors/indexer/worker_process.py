"""The actor's side of a worker: starts it, hands it one ask at a time under a deadline, kills and replaces it when it dies or is late."""

from __future__ import annotations

import asyncio
import os
import pickle
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from actors.indexer.worker import FRAME, FRAME_BYTES_MAX
from strobe.errors import Code, StrobeError

START_DEADLINE_S: Final = 20.0
BLAME_S: Final = 10.0  # a file is blamed for lateness only when it had that long
DEATHS_MAX: Final = 2  # a file in hand at that many deaths is refused from then on
_QUARANTINE_MAX: Final = 256


class WorkerDied(Exception):
    """The worker ended or was killed while it had `path` in hand."""

    def __init__(self, path: str | None, late: bool) -> None:
        super().__init__(path, late)
        self.path = path
        self.late = late


class Quarantine:
    """Files that killed a worker: path and mtime → deaths. A rebuilt file gets a new chance."""

    def __init__(self) -> None:
        self._deaths: dict[tuple[str, int], int] = {}

    def check(self, path: str) -> None:
        if self._deaths.get(self._key(path), 0) >= DEATHS_MAX:
            raise StrobeError(
                Code.ACTOR_UNAVAILABLE,
                f"Reading symbols of {path} killed the indexer's worker {DEATHS_MAX} times; the file is refused.",
                "Check the file with readelf; rebuild it, or strip its debug info.",
                value=path,
            )

    def count(self, path: str) -> None:
        if len(self._deaths) >= _QUARANTINE_MAX:
            self._deaths.pop(next(iter(self._deaths)))
        key = self._key(path)
        self._deaths[key] = self._deaths.get(key, 0) + 1

    @staticmethod
    def _key(path: str) -> tuple[str, int]:
        try:
            return path, Path(path).stat().st_mtime_ns
        except OSError:
            return path, 0


class WorkerProcess:
    """One child. Asks queue on a lock: the child parses one thing at a time."""

    def __init__(self, quarantine: Quarantine) -> None:
        self._quarantine = quarantine
        self._lock = asyncio.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    @property
    def pid(self) -> int | None:
        return self._child.pid if self._child is not None and self._child.poll() is None else None

    async def start(self) -> None:
        async with self._lock:
            await self._ensure()

    async def ask(self, message: Any, deadline_s: float) -> Any:
        """The worker's answer. Errors: what the worker raised; TIMEOUT past the deadline; ACTOR_UNAVAILABLE when the worker died."""
        end = asyncio.get_running_loop().time() + deadline_s
        try:
            async with asyncio.timeout_at(end):
                await self._lock.acquire()
        except TimeoutError as error:
            raise _late(message, deadline_s) from error
        try:
            return await self._exchange(message, end, deadline_s)
        finally:
            self._lock.release()

    async def _exchange(self, message: Any, end: float, deadline_s: float) -> Any:
        path: list[str] = []
        try:
            async with asyncio.timeout_at(end):
                return await self._attempt(message, path)
        except TimeoutError as error:
            await self._kill()
            if deadline_s >= BLAME_S:
                self._blame(path)
            raise _late(message, deadline_s) from error
        except (EOFError, ConnectionError, asyncio.IncompleteReadError) as error:
            await self._kill()
            self._blame(path)
            subject = path[-1] if path else "the request"
            what = f"The indexer's worker died while it read {subject}."
            raise StrobeError(Code.ACTOR_UNAVAILABLE, what, "Ask again; a file that kills it twice is refused.", value=subject) from error
        except asyncio.CancelledError:
            await self._kill()  # its answer would pass for the next one's
            raise

    async def _attempt(self, message: Any, path: list[str]) -> Any:
        """Once more with a new worker when the old one was dead before it looked at anything."""
        await self._ensure()
        try:
            await self._send(message)
            return await self._answer(path)
        except (EOFError, ConnectionError, asyncio.IncompleteReadError):
            if path:
                raise
        await self._kill()
        await self._ensure()
        await self._send(message)
        return await self._answer(path)

    async def _answer(self, path: list[str]) -> Any:
        while True:
            kind, body = await self._receive()
            if kind == "note":
                path.append(body)
                await self._check(body)
            elif kind == "error":
                raise StrobeError.from_wire(body)
            else:
                return body

    async def _check(self, path: str) -> None:
        try:
            self._quarantine.check(path)
        except StrobeError:
            await self._kill()  # before it opens the file, or while it does
            raise

    def _blame(self, path: list[str]) -> None:
        if path:
            self._quarantine.count(path[-1])

    async def _ensure(self) -> None:
        if self._child is not None and self._child.poll() is None:
            return
        ours, theirs = socket.socketpair()
        with theirs:
            os.set_inheritable(theirs.fileno(), True)
            command = [sys.executable, "-P", "-m", "actors.indexer.worker", str(theirs.fileno()), str(os.getpid())]
            self._child = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()])
        self._reader, self._writer = await asyncio.open_unix_connection(sock=ours, limit=1 << 20)
        try:
            async with asyncio.timeout(START_DEADLINE_S):
                await self._receive()
        except (TimeoutError, EOFError, ConnectionError, asyncio.IncompleteReadError) as error:
            await self._kill()
            what = "The indexer's worker did not start."
            raise StrobeError(Code.ACTOR_UNAVAILABLE, what, "See the indexer's log; `strobe-ctl doctor` checks the installation.") from error

    async def _send(self, message: Any) -> None:
        assert self._writer is not None
        body = pickle.dumps(message, protocol=5)
        self._writer.write(FRAME.pack(len(body)) + body)
        await self._writer.drain()

    async def _receive(self) -> tuple[str, Any]:
        assert self._reader is not None
        (size,) = FRAME.unpack(await self._reader.readexactly(FRAME.size))
        if size > FRAME_BYTES_MAX:
            raise ConnectionError(f"frame of {size} bytes")
        kind, body = pickle.loads(await self._reader.readexactly(size))
        return kind, body

    async def _kill(self) -> None:
        child, self._child = self._child, None
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        if child is not None:
            child.kill()
            await asyncio.to_thread(child.wait)

    async def stop(self) -> None:
        await self._kill()


def _late(message: Any, deadline_s: float) -> StrobeError:
    what = f"{message.TYPE} took longer than {deadline_s:.1f} s."
    return StrobeError(Code.TIMEOUT, what, "Ask again: what was read by then is cached; or name fewer functions or modules.")
