"""`initialize` through `strobe mcp`, from the start of the process to the answer: with the node up (warm), with none running (cold); and a first call."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO, Any, Final

from strobe.client import Client
from tests.bench.figure import Figure, percentile, spread
from tests.bench.options import Options
from tests.harness import node

HELLO: Final = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
COMMAND: Final = (str(Path(sys.executable).parent / "strobe"), "mcp")


def run(options: Options) -> list[Figure]:
    cold, cold_call, warm = [], [], []
    with tempfile.TemporaryDirectory(prefix="strobe-bench-") as folder:
        for number in range(options.times(5)):
            home = Path(folder) / str(number)
            answered, called = _session(home)
            cold.append(answered * 1e3)
            cold_call.append(called)
            if number == 0:
                asyncio.run(_until_quiet(home))
                warm = [_session(home)[0] * 1e3 for _ in range(options.times(20))]
            _stop(home)
    return [
        Figure("initialize through the shim, node up", percentile(warm, 0.5), "ms", 50, note=f"{spread(warm)} ms"),
        Figure("initialize through the shim, no node", percentile(cold, 0.5), "ms", 1500, note=f"{spread(cold)} ms"),
        Figure("first debug_session list answered, no node before", percentile(cold_call, 0.5), "s", note=f"{spread(cold_call)} s"),
    ]


def _session(home: Path) -> tuple[float, float]:
    """Seconds from the start of `strobe mcp` to the answers of initialize and of a first tool call."""
    environment = {**os.environ, "STROBE_HOME": str(home)}
    started = time.perf_counter()
    with subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as shim:
        assert shim.stdin is not None
        assert shim.stdout is not None
        _send(shim.stdin, {"id": 1, "method": "initialize", "params": HELLO})
        _answer(shim.stdout, 1)
        answered = time.perf_counter() - started
        _send(shim.stdin, {"method": "notifications/initialized"})
        _send(shim.stdin, {"id": 2, "method": "tools/call", "params": {"name": "debug_session", "arguments": {"action": "list"}}})
        reply = _answer(shim.stdout, 2)
        called = time.perf_counter() - started
        if reply.get("isError"):
            raise RuntimeError(reply)
        shim.stdin.close()
        shim.wait(timeout=20)
    return answered, called


def _send(pipe: IO[bytes], message: dict[str, Any]) -> None:
    pipe.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    pipe.flush()


def _answer(pipe: IO[bytes], number: int) -> dict[str, Any]:
    for line in pipe:
        message = json.loads(line)
        if message.get("id") == number:
            result: dict[str, Any] = message["result"]
            return result
    raise RuntimeError("strobe mcp ended without an answer")


async def _until_quiet(home: Path) -> None:
    """The spare pair of processes has started too, and is warm."""
    with node.environment(home, None, {}):
        async with Client(home) as client:
            await node.all_ready(client)
    await asyncio.sleep(3.0)


def _stop(home: Path) -> None:
    with node.environment(home, None, {}):
        asyncio.run(node.stop(home))
