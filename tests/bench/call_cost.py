"""ns that one traced call costs: Strobe's thunks, drained by a live session, next to uftrace, Frida's Interceptor and frida-trace-like JavaScript hooks.

The same program with the same bursts for each; the variants take turns, so that a change of the machine's mood meets all of them. Every figure is what
the call costs more than the untraced call: median over the runs of the median over a run's bursts. Strobe and uftrace record two int arguments and the
return value.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from typing import Final

import frida

from strobe.artifacts import artifact
from tests.bench.figure import Figure, spread
from tests.bench.options import Options, live_node
from tests.harness.mcp import Strobe
from tests.harness.targets import TARGETS, program

FLAGS: Final = ("-O2", "-rdynamic")
BURST: Final = 50_000
PAUSE_MS: Final = 200  # half a million events a second: what is dropped would not be of the full cost
RUN_S: Final = 120
FLOOR_JS: Final = """
const c = new CModule(`#include <gum/guminterceptor.h>
void onEnter(GumInvocationContext *ic) {} void onLeave(GumInvocationContext *ic) {}`);
Interceptor.attach(Process.mainModule.getExportByName('work'), {onEnter: c.onEnter, onLeave: c.onLeave});
"""
# What frida-trace's generated handlers do: format the arguments and hand batches of lines to the host.
TRACE_JS: Final = """
let lines = [];
const flush = () => { if (lines.length) { send({type: 'events:add', events: lines}); lines = []; } };
setInterval(flush, 50);
const add = text => { lines.push([Process.getCurrentThreadId(), text]); if (lines.length >= 1000) flush(); };
Interceptor.attach(Process.mainModule.getExportByName('work'), {
  onEnter(args) { add(`work(a=${args[0].toInt32()}, b=${args[1].toInt32()})`); },
  onLeave(retval) { add(`=> ${retval.toInt32()}`); },
});
"""

Run = Callable[[list[str]], Awaitable[float]]


def run(options: Options) -> list[Figure]:
    return asyncio.run(_measure(options))


async def _measure(options: Options) -> list[Figure]:
    arguments = [str(BURST), str(options.times(15, 4)), str(PAUSE_MS)]
    path = program("bench_calls.c", *FLAGS)
    async with live_node({"events.maxPerSession": 10_000_000}) as strobe:
        variants: dict[str, Run] = {
            "untraced": lambda args: _plain([str(path), *args]),
            "Strobe": lambda args: _strobe(strobe, path, args),
            "Frida Interceptor, empty C callbacks": lambda args: _frida(path, args, FLOOR_JS),
            "frida-trace-like JavaScript hooks": lambda args: _frida(path, args, TRACE_JS),
        }
        if shutil.which("uftrace"):
            counted = program("bench_calls.c", *FLAGS, "-pg", name="bench_calls_pg")
            variants["untraced, -pg"] = lambda args: _plain([str(counted), *args])
            variants["uftrace, two arguments and return value"] = lambda args: _uftrace(counted, args)
        values: dict[str, list[float]] = {name: [] for name in variants}
        thunks: list[float] = []
        for _ in range(options.times(10)):
            for name, variant in variants.items():
                values[name].append(await variant(arguments))
            thunks.append(_empty_thunk())
    return _figures(values) + _against_thunk(values, thunks)


def _empty_thunk() -> float:
    """ns that a call costs in the recorder alone when neither arguments nor result are captured (native_floor.c)."""
    floor = program("../bench/native_floor.c", "-O2")
    done = subprocess.run([str(floor), str(artifact("strobe-recorder.so"))], capture_output=True, timeout=RUN_S, check=True, stdin=subprocess.DEVNULL)
    return float(json.loads(done.stdout)["enterExit"])


def _against_thunk(values: dict[str, list[float]], thunks: list[float]) -> list[Figure]:
    cost = median(values["Strobe"]) - median(values["untraced"])
    note = f"its cost {spread(thunks)} ns, of which two time stamps are the most"
    return [Figure("Strobe's cost per call against the recorder's own empty thunk", cost / median(thunks), "x", 1.5, note=note)]


def _figures(values: dict[str, list[float]]) -> list[Figure]:
    base = median(values["untraced"])
    added = {name: median(runs) - base for name, runs in values.items()}
    traced = {name: runs for name, runs in values.items() if "untraced" not in name}
    figures = [Figure(f"ns per traced call: {name}", added[name], "ns", note=f"{spread(runs)} ns, untraced {base:.2f} ns") for name, runs in traced.items()]
    goals = {"uftrace, two arguments and return value": 0.6}
    others = [name for name in traced if name != "Strobe"]
    figures += [Figure(f"Strobe's cost per call against {name}", added["Strobe"] / added[name], "x", goals.get(name)) for name in others]
    return figures


def burst_median(stdout: bytes) -> float:
    found = [float(value) for value in re.findall(rb"(?m)^ns ([0-9.]+)$", stdout)]
    if not found:
        raise RuntimeError(f"no figures in {stdout[-400:]!r}")
    return median(found)


async def _plain(command: list[str]) -> float:
    with tempfile.TemporaryDirectory() as folder:  # a program built with -pg leaves a gmon.out where it runs
        done = subprocess.run(command, capture_output=True, timeout=RUN_S, check=True, cwd=folder, stdin=subprocess.DEVNULL)
    return burst_median(done.stdout)


async def _uftrace(path: Path, arguments: list[str]) -> float:
    with tempfile.TemporaryDirectory() as folder:
        record = ["uftrace", "record", "--no-libcall", "-d", f"{folder}/data", "-A", "work@arg1/i32,arg2/i32", "-R", "work@retval/i32"]
        return await _plain([*record, str(path), *arguments])


async def _frida(path: Path, arguments: list[str], script: str) -> float:
    environment = {**os.environ, "BENCH_WAIT": "1"}
    with subprocess.Popen([str(path), *arguments], stdout=subprocess.PIPE, stdin=subprocess.PIPE, env=environment) as target:
        until_waiting(target.pid)
        session = frida.attach(target.pid)
        loaded = session.create_script(script)
        loaded.on("message", _ignore)
        loaded.load()
        stdout, _ = await asyncio.to_thread(target.communicate, b"\n", timeout=RUN_S)
    return burst_median(stdout)


def until_waiting(pid: int) -> None:
    """It waits for its line on stdin: attaching while it is still being loaded may end it (SIGABRT)."""
    deadline = time.monotonic() + RUN_S
    while not Path(f"/proc/{pid}/syscall").read_text().startswith("0 0x0 "):  # read(0, …), proc(5)
        if time.monotonic() > deadline:
            raise RuntimeError(f"process {pid} does not wait for its line")
        time.sleep(0.005)


def _ignore(message: object, _: object) -> None:
    if isinstance(message, dict) and message.get("type") == "error":
        raise RuntimeError(message)


async def _strobe(strobe: Strobe, path: Path, arguments: list[str]) -> float:
    session_id = await strobe.launch(path, *arguments, root=TARGETS, trace=["work"])
    await strobe.until_ended(session_id, within_s=RUN_S)
    stdout, _ = await strobe.output(session_id)
    reply = await strobe.call("debug_query", sessionId=session_id, function={"equals": "work"}, limit=1)
    calls = 1000 + int(arguments[0]) * int(arguments[1])
    dropped = sum(reply.get("eventsDropped", {}).values())
    if reply["totalCount"] + dropped != 2 * calls or dropped:
        raise RuntimeError(f"{reply['totalCount']} events in the timeline and {dropped} dropped after {calls} calls: the figure would not be of full recording")
    await strobe.call("debug_session", action="stop", sessionId=session_id)
    await strobe.call("debug_trace", remove=["work"])
    return burst_median(stdout)
