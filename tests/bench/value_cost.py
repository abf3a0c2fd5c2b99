"""ns that one traced call costs by what its arguments hold, next to uftrace with -A on the same functions and to Frida JavaScript that reads the same.

One program (bench_values.cpp), the same bursts for each; the variants take turns. Every figure is what a call costs more than the untraced call: median
over the runs of the median over a run's bursts. Strobe's depth is the default, 3. uftrace follows no pointers of structs and maps:
there it records the address.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from statistics import median
from typing import Final

import frida

from tests.bench.call_cost import burst_median, until_waiting
from tests.bench.figure import Figure, spread
from tests.bench.options import Options, live_node
from tests.harness.mcp import Strobe
from tests.harness.targets import TARGETS, program

FLAGS: Final = ("-O2", "-rdynamic")
KINDS: Final = {
    "none": "no arguments", "two": "2 ints", "six": "6 scalars", "deep": "a struct 3 pointers deep", "text": "std::string of 64", "map": "std::map of 10",
}  # fmt: skip
SYMBOLS: Final = {
    "none": "none", "two": "two", "six": "six", "deep": "_Z4deepPK5Outer", "text": "_Z4textRKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
    "map": "_Z3mapRKSt3mapIiiSt4lessIiESaISt4pairIKiiEEE",
}  # fmt: skip
BURSTS: Final = {"none": 40_000, "two": 40_000, "six": 40_000, "deep": 10_000, "text": 10_000, "map": 4_000}
PAUSE_MS: Final = 250
RUN_S: Final = 120
_UFTRACE: Final = {
    "none": [], "two": ["-A", "two@arg1/i32,arg2/i32"], "six": ["-A", "six@arg1/i32,arg2/i64,arg3/u32,arg4/i16,arg5/c,arg6/i64"],
    "deep": ["-A", "deep@arg1/x"], "text": ["-A", "text@arg1/S"], "map": ["-A", "map@arg1/x"],
}  # fmt: skip
_READS: Final = {
    "none": "", "two": "out.push(args[0].toInt32(), args[1].toInt32());",
    "six": "for (let i = 0; i < 6; i++) out.push(args[i].toInt32());",
    "deep": """
      const o = args[0]; out.push(o.readByteArray(24));
      const m = o.readPointer(); out.push(m.readByteArray(16)); out.push(m.readPointer().readByteArray(48));""",
    "text": "const s = args[0]; out.push(s.readPointer().readByteArray(s.add(8).readU64().toNumber()));",
    "map": """
      const go = n => { if (n.isNull()) return; go(n.add(16).readPointer()); out.push(n.readByteArray(40)); go(n.add(24).readPointer()); };
      out.push(args[0].readByteArray(48)); go(args[0].add(16).readPointer());""",
}  # fmt: skip


def run(options: Options) -> list[Figure]:
    return asyncio.run(_measure(options))


async def _measure(options: Options) -> list[Figure]:
    path, counted = program("bench_values.cpp", *FLAGS), program("bench_values.cpp", *FLAGS, "-pg", name="bench_values_pg")
    figures: list[Figure] = []
    async with live_node({"events.maxPerSession": 10_000_000}) as strobe:
        for kind in KINDS:
            values: dict[str, list[float]] = {"untraced": [], "Strobe": [], "JavaScript": []}
            for _ in range(options.times(5)):
                arguments = [kind, str(BURSTS[kind]), str(options.times(10, 3)), str(PAUSE_MS)]
                values["untraced"].append(_plain([str(path), *arguments]))
                values["Strobe"].append(await _strobe(strobe, path, kind, arguments))
                values["JavaScript"].append(_javascript(path, kind, arguments))
                if shutil.which("uftrace"):
                    values.setdefault("uftrace", []).append(_uftrace(counted, kind, arguments))
            figures += _figures(kind, values)
    return figures


def _figures(kind: str, values: dict[str, list[float]]) -> list[Figure]:
    base = median(values["untraced"])
    cost = {name: median(runs) - base for name, runs in values.items()}
    found = [Figure(f"ns per call, {KINDS[kind]}: {name}", cost[name], "ns", note=f"{spread(values[name])} ns") for name in values if name != "untraced"]
    return found + [Figure(f"{KINDS[kind]}: Strobe against {name}", cost["Strobe"] / cost[name], "x") for name in ("uftrace", "JavaScript") if name in cost]


def _plain(command: list[str]) -> float:
    with tempfile.TemporaryDirectory() as folder:  # a program built with -pg leaves a gmon.out where it runs
        done = subprocess.run(command, capture_output=True, timeout=RUN_S, check=True, cwd=folder, stdin=subprocess.DEVNULL)
    return burst_median(done.stdout)


def _uftrace(path: Path, kind: str, arguments: list[str]) -> float:
    with tempfile.TemporaryDirectory() as folder:
        record = ["uftrace", "record", "--no-libcall", "-d", f"{folder}/data", *_UFTRACE[kind], "-R", f"{kind}@retval/i32", "-F", SYMBOLS[kind]]
        return _plain([*record, str(path), *arguments])


def _javascript(path: Path, kind: str, arguments: list[str]) -> float:
    script = f"""
      const batch = [];
      Interceptor.attach(Process.mainModule.getExportByName('{SYMBOLS[kind]}'), {{
        onEnter(args) {{ const out = []; {_READS[kind]} batch.push(out); if (batch.length > 1000) batch.length = 0; }},
        onLeave(result) {{ batch.push(result.toInt32()); }},
      }});"""
    with subprocess.Popen([str(path), *arguments], stdout=subprocess.PIPE, stdin=subprocess.PIPE, env={**os.environ, "BENCH_WAIT": "1"}) as target:
        until_waiting(target.pid)
        loaded = frida.attach(target.pid).create_script(script)
        loaded.load()
        stdout, _ = target.communicate(b"\n", timeout=RUN_S)
    return burst_median(stdout)


async def _strobe(strobe: Strobe, path: Path, kind: str, arguments: list[str]) -> float:
    session_id = await strobe.launch(path, *arguments, root=TARGETS, trace=[kind])
    await strobe.until_ended(session_id, within_s=RUN_S)
    stdout, _ = await strobe.output(session_id)
    reply = await strobe.call("debug_query", sessionId=session_id, function={"equals": kind}, limit=1, verbose=True)
    calls = int(arguments[1]) * int(arguments[2])
    dropped = sum(reply.get("eventsDropped", {}).values())
    if dropped or reply["totalCount"] != 2 * calls:
        raise RuntimeError(f"{reply['totalCount']} events and {dropped} dropped after {calls} calls of {kind}: the figure would not be of full recording")
    await strobe.call("debug_session", action="stop", sessionId=session_id)
    await strobe.call("debug_trace", remove=[kind])
    return burst_median(stdout)
