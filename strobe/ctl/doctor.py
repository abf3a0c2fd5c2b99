"""`doctor`: can Strobe do its work here? `bench`: how fast?"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import typer

import strobe
from strobe.client import Client
from strobe.ctl.checks import CHECKS, Finding
from strobe.ctl.output import AsJson, command, show_json, show_table
from strobe.errors import Code, StrobeError
from strobe.protocol.supervisor import Status, StatusReply
from strobe.supervisor.start import node_pid

_MARKS = {"ok": "ok", "warning": "warning", "failed": "FAILED"}


@command
async def doctor(as_json: AsJson = False) -> int:
    """Check this machine and the node. Exit status 1 when something that Strobe needs is missing."""
    findings = [await asyncio.to_thread(check) for check in CHECKS] + [await check_node()]
    failed = any(finding.verdict == "failed" for finding in findings)
    if as_json:
        rows = [{"nextStep" if key == "next_step" else key: value for key, value in asdict(finding).items()} for finding in findings]
        show_json({"ok": not failed, "findings": rows})
        return int(failed)
    table = [(f.check, _MARKS[f.verdict], f.detail + (f" → {f.next_step}" if f.next_step else "")) for f in findings]
    show_table(("check", "", "finding"), table, empty="")
    return int(failed)


async def check_node() -> Finding:
    """A node that does not run is fine: it starts when it is needed."""
    if node_pid() is None:
        return Finding("node", "ok", "not running; it starts when it is needed")
    try:
        async with Client() as client:
            node: StatusReply = await client.ask("supervisor", Status())
    except StrobeError as error:
        return Finding("node", "failed", error.what, error.next_step)
    bad = [f"{actor.name} {actor.state} ({actor.last_error})" for actor in node.actors if actor.state in ("failed", "unhealthy")]
    if bad:
        return Finding("node", "failed", "; ".join(bad), "See the actor's log; `strobe-ctl stop`, the next call starts a new node.")
    if node.version != strobe.__version__:
        detail = f"running node is version {node.version}, this is {strobe.__version__}"
        return Finding("node", "warning", detail, "`strobe-ctl stop`; the next call starts the new version.")
    return Finding("node", "ok", f"pid {node.pid}, {len(node.actors)} actors, {node.clients} clients")


@command
async def bench(context: typer.Context) -> int:
    """Run the benchmarks of a checkout; arguments go to `python -m tests.bench`."""
    checkout = Path(strobe.__file__).resolve().parent.parent
    if not (checkout / "tests" / "bench" / "__main__.py").exists():
        text = f"{checkout} is no checkout: the benchmarks are not installed."
        raise StrobeError(Code.VALIDATION_ERROR, text, "Clone the repository and run `make bench` there.", value=str(checkout))
    return (await asyncio.to_thread(subprocess.run, [sys.executable, "-m", "tests.bench", *context.args], cwd=checkout, check=False)).returncode
