"""A node whose only actor is tests.harness.echo, in the store's place."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from strobe.client import Client
from strobe.supervisor.main import run_node
from strobe.supervisor.private import open_private
from strobe.supervisor.start import node_pid
from strobe.supervisor.topology import Role
from tests.harness.node import all_ready, assert_nothing_left, environment, run, stop, until
from tests.harness.times import shorten

ROLES = (Role("store", module="tests.harness.echo", stop_s=1.0),)


@asynccontextmanager
async def echo_node(home: Path, *, ready: bool = True, **env: str) -> AsyncIterator[Client]:
    """Like tests.harness.node.node, with the echo actor as `store`."""
    with environment(home, None, env):
        process = start_echo_node(home)
        try:
            await until(lambda: _holds(home))
            async with Client() as client:
                if ready:
                    await all_ready(client)
                yield client
        finally:
            await stop(home)
            await asyncio.to_thread(process.wait, 10)
        assert_nothing_left(home)


@contextmanager
def lasting_echo_node(home: Path) -> Iterator[Path]:
    """For several tests, each with a `Client()` of its own."""

    async def served() -> None:
        await until(lambda: _holds(home))
        async with Client() as client:
            await all_ready(client)

    with environment(home, None, {}):
        process = start_echo_node(home)
        try:
            run(served())
            yield home
        finally:
            run(stop(home))
            process.wait(10)
        assert_nothing_left(home)


def start_echo_node(home: Path) -> subprocess.Popen[bytes]:
    home.mkdir(mode=0o700, exist_ok=True)
    with open_private(home / "node.stderr") as output:
        command = [sys.executable, "-m", "tests.harness.echo_node"]
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True)


async def _holds(home: Path) -> bool:
    return node_pid(home) is not None


if __name__ == "__main__":
    shorten()
    sys.exit(run_node(ROLES))
