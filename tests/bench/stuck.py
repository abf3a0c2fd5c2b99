"""The stuck-detector: what watching costs (share of one core, by threads, of a tree that rests and of one that works a little), what a sample takes, and how
long after it has formed a proven deadlock is told."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from actors.stuck_detector.diagnosis import sample
from strobe.client import Client
from strobe.protocol.stuck_detector import Suspicions, SuspicionsReply, Unwatch, Watch
from strobe.protocol.supervisor import Status, StatusReply
from tests.bench.figure import Figure, percentile, spread
from tests.bench.options import Options
from tests.harness import node as nodes
from tests.harness.targets import program

THREADS = (10, 50, 200)
REST = "import sys,threading,time\nfor _ in range(int(sys.argv[1]) - 1): threading.Thread(target=threading.Event().wait, args=(600,), daemon=True).start()\n"
RESTS = REST + "print('up', flush=True); threading.Event().wait(600)"
WORKS = REST + "print('up', flush=True)\nwhile True: time.sleep(0.02)"


@contextmanager
def started(*command: str) -> Iterator[int]:
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
    finally:
        process.kill()
        process.communicate()


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def detector_pid(client: Client) -> int:
    reply: StatusReply = await client.ask("supervisor", Status())
    return next(actor.pid for actor in reply.actors if actor.name == "stuck_detector" and actor.pid)


async def share(client: Client, pid: int, watched: int | None, seconds: float) -> float:
    """Of one core, by the detector, once it has settled."""
    if watched:
        await client.ask("stuck_detector", Watch(key="bench", pid=watched))
        await asyncio.sleep(2)
    before, began = cpu_s(pid), time.monotonic()
    await asyncio.sleep(seconds)
    used = (cpu_s(pid) - before) / (time.monotonic() - began)
    if watched:
        await client.ask("stuck_detector", Unwatch(key="bench"))
    return used


async def latency(client: Client, path: str) -> float:
    with started(path, "two") as pid:
        began = time.monotonic()
        await client.ask("stuck_detector", Watch(key="late", pid=pid))
        while time.monotonic() < began + 20:
            reply: SuspicionsReply = await client.ask("stuck_detector", Suspicions(key="late"))
            if reply.current and reply.current.verdict.certainty == "proven":
                return time.monotonic() - began
            await asyncio.sleep(0.01)
    raise AssertionError("no verdict")


async def measured(options: Options, figures: list[Figure]) -> None:
    seconds, runs = (4.0, 3) if options.quick else (15.0, 10)
    with tempfile.TemporaryDirectory() as home:
        async with nodes.node(Path(home), roles=("stuck_detector", "indexer")) as client:
            pid = await detector_pid(client)
            idle = await share(client, pid, None, seconds)
            figures.append(Figure("watching nothing", idle * 100, "%"))
            for count in THREADS:
                for words, code in (("rest", RESTS), ("work a little", WORKS)):
                    with started(sys.executable, "-c", code, str(count)) as target:
                        used = await share(client, pid, target, seconds)
                        figures.append(Figure(f"watching {count} threads that {words}", used * 100, "%", 1.0 if count <= 50 else None))
            path = str(program("stuck/locks.c", "-O0"))
            times = [await latency(client, path) for _ in range(runs)]
            figures.append(Figure("a proven deadlock, told after it formed", percentile(times, 0.5) * 1000, "ms", 1000, note=spread(times) + " s"))


def run_samples(figures: list[Figure]) -> None:
    for count in THREADS:
        with started(sys.executable, "-c", RESTS, str(count)) as target:
            times: list[Any] = []
            for _ in range(20):
                began = time.perf_counter()
                sample(target)
                times.append((time.perf_counter() - began) * 1000)
            figures.append(Figure(f"one sample of {count} threads", percentile(times, 0.5), "ms", note=spread(times)))


def run(options: Options) -> list[Figure]:
    figures: list[Figure] = []
    run_samples(figures)
    nodes.run(measured(options, figures))
    return figures
