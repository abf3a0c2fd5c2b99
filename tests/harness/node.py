"""A node of its own per test, in a temporary STROBE_HOME, and proof that nothing of it is left.

    async def test_x(...):
        async with node(tmp_path, roles=("store",)) as client:      # the real supervisor with these actors only
            reply = await client.ask("store", StoreStatus())

`roles=None` starts everything. Plain tests: `run(coroutine)`.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from strobe import paths
from strobe.client import Client
from strobe.protocol.supervisor import ActorStatus, Shutdown, Status, StatusReply
from strobe.supervisor.start import node_pid

_T = TypeVar("_T")
STOP_S = 60.0


def run(work: Coroutine[Any, Any, _T]) -> _T:
    return asyncio.run(work)


@asynccontextmanager
async def node(home: Path, *, roles: Sequence[str] | None = None, env: dict[str, str] | None = None) -> AsyncIterator[Client]:
    """Starts a node for `home`, waits until its actors are ready, yields a client; ends the node and checks that nothing is left."""
    with environment(home, roles, env or {}):
        try:
            async with Client(start=True) as client:
                await all_ready(client)
                yield client
        finally:
            await stop(home)
        assert_nothing_left(home)


class environment:
    """os.environ for the node and the client; put back at the end."""

    def __init__(self, home: Path, roles: Sequence[str] | None, env: dict[str, str]) -> None:
        self._new = {"STROBE_HOME": str(home), **env} | ({} if roles is None else {"STROBE_ROLES": ",".join(roles)})
        self._old: dict[str, str | None] = {}

    def __enter__(self) -> None:
        self._old = {name: os.environ.get(name) for name in self._new}
        os.environ.update(self._new)

    def __exit__(self, *_: object) -> None:
        for name, value in self._old.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


async def status(client: Client) -> StatusReply:
    reply: StatusReply = await client.ask("supervisor", Status())
    return reply


async def actor(client: Client, name: str) -> ActorStatus:
    """The table's row of `name`. Raises KeyError."""
    return {row.name: row for row in (await status(client)).actors}[name]


async def all_ready(client: Client, *, within_s: float = 30.0) -> None:
    async def ready() -> bool:
        rows = (await status(client)).actors
        failed = [row for row in rows if row.state == "failed"]
        assert not failed, failed
        return all(row.state == "ready" for row in rows)

    await until(ready, within_s=within_s)


async def until(condition: Callable[[], Awaitable[bool]], *, within_s: float = 10.0) -> None:
    """Waits for `condition`, looking each 20 ms. AssertionError when it stays false."""
    deadline = time.monotonic() + within_s
    while not await condition():
        assert time.monotonic() < deadline, f"{getattr(condition, '__name__', condition)} stayed false for {within_s:g} s"
        await asyncio.sleep(0.02)


async def stop(home: Path) -> None:
    """Ends the node of `home` in order, if one runs, and waits for its last process. By signal when it does not take the ask."""
    pid = node_pid(home)
    if pid is None:
        return
    try:
        async with Client(home) as client:
            await client.ask("supervisor", Shutdown(reason="end of test"))
    except Exception:
        if node_pid(home) != pid:  # it was ending of itself
            return
        os.kill(pid, signal.SIGTERM)
        raise
    await until(lambda: _false(node_pid(home) is None), within_s=STOP_S)


async def _false(value: bool) -> bool:
    return value


def processes_of(home: Path) -> list[str]:
    """Living processes whose environment names `home`, but for this one and its own children by other means: 'pid cmdline'."""
    needle = f"STROBE_HOME={home}\0".encode()
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        try:
            if needle in (folder / "environ").read_bytes() + b"\0":
                found.append(f"{folder.name} {(folder / 'cmdline').read_bytes().replace(bytes(1), b' ').decode(errors='replace')}")
        except (FileNotFoundError, PermissionError, ProcessLookupError):
            continue
    return found


def assert_nothing_left(home: Path) -> None:
    """No process, no socket, no shared memory of `home`'s node."""
    deadline = time.monotonic() + 5
    while (left := processes_of(home)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not left, f"processes left: {left}"
    with environment(home, None, {}):
        sockets = [path for path in paths.run_folder().iterdir() if path.is_socket()]
        pools = list(Path("/dev/shm").glob(f"{paths.pool_path('x').name[:-1]}*"))
    assert not sockets, f"sockets left: {sockets}"
    assert not pools, f"shared memory left: {pools}"
