"""All benchmarks, by one command:

    make bench                           every bench
    make bench ARGS="--only call_cost"   some of them (repeatable)
    make bench ARGS="--list"             their names

Each bench is a file here with `run(options) -> list[Figure]`. Prints a table, and writes it with all raw values to build/bench.json.
Run it on an otherwise idle machine: figures are ratios wherever something else can be measured in the same run.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from tests.bench.figure import Figure, machine, table
from tests.bench.options import Options

BENCHES: Final = (
    "call_cost", "value_cost", "typed_hooks", "throughput", "query", "first_hook", "launch", "initialize", "tool_tokens", "sessions",
    "loading", "test_runs", "stuck",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=BENCHES, help="run this bench alone (repeatable)")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter runs: to see that the benches work, not to measure")
    parser.add_argument("--json", type=Path, default=Path("build/bench.json"), help="where the figures go (default: %(default)s)")
    parser.add_argument("--list", action="store_true", help="print the names of the benches")
    given = parser.parse_args()
    if given.list:
        print("\n".join(BENCHES))
        return
    facts = {"date": datetime.now(UTC).isoformat(timespec="seconds"), "command": " ".join(["python -m tests.bench", *sys.argv[1:]]), "machine": machine()}
    print(json.dumps(facts, indent=1), flush=True)
    results = {name: measured(name, Options(quick=given.quick)) for name in given.only or BENCHES}
    print("\n" + table(figure for figures in results.values() for figure in figures))
    given.json.parent.mkdir(parents=True, exist_ok=True)
    figures = {name: [figure.as_dict() for figure in found] for name, found in results.items()}
    given.json.write_text(json.dumps({**facts, "figures": figures}, indent=1) + "\n")
    print(f"\nwritten to {given.json}")


def measured(name: str, options: Options) -> list[Figure]:
    started = time.monotonic()
    print(f"\n{name} ...", file=sys.stderr, flush=True)
    figures: list[Figure] = importlib.import_module(f"tests.bench.{name}").run(options)
    print(table(figures), f"\n{name}: {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    return figures


main()
