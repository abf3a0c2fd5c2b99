"""Calls of the programs that hand values over in every way, through `strobe mcp`: what the recorder copies shows what they were given and gave back."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.actor import test_indexer_images as cpp
from tests.actor import test_indexer_images_rust as rust
from tests.harness.mcp import Strobe, strobe_mcp
from tests.harness.recorded_cores import without_addresses
from tests.harness.targets import TARGETS, program

pytestmark = pytest.mark.anyio
TYPED_S = 60.0  # on a busy machine


@pytest.mark.parametrize(("level", "too_short"), [("-O0", 0), ("-O2", 10)], ids=["O0", "O2"])
async def test_c_plus_plus(tmp_path: Path, level: str, too_short: int) -> None:
    """`too_short`: how many of the functions have too few bytes for a hook, at most."""
    await _compare(program("indexer/handed.cpp", level), "shop::case_*", cpp.CALLS, cpp.RETURNS, tmp_path, too_short)


async def test_rust(tmp_path: Path) -> None:
    calls = {name: {"pair" if "wide" in name else "": said} for name, said in rust.CALLS.items()}
    await _compare(program("indexer/handed.rs"), "**case_*", calls, rust.RETURNS, tmp_path)


async def _compare(path: Path, pattern: str, calls: dict[str, dict[str, Any]], returns: dict[str, Any], folder: Path, too_short: int = 0) -> None:
    """`calls`: by function and argument; the one argument of a function may be called anything where its name is not told."""
    async with strobe_mcp(folder / "home") as strobe:
        wrong, seen = _differences(await _events(strobe, path, pattern, folder / "go"), calls, returns)
    assert not wrong, "\n".join(wrong)
    assert len(seen) >= len(calls) + len(returns) - too_short


def _differences(events: list[dict[str, Any]], calls: dict[str, dict[str, Any]], returns: dict[str, Any]) -> tuple[list[str], set[str]]:
    """(what is wrong, what was seen)."""
    wrong: list[str] = []
    seen: set[str] = set()
    for event in events:
        name = event["function"].partition("(")[0].rpartition("::")[2].partition("[")[0]
        if event["eventType"] == "function_exit":
            shown, said = {"return": event.get("returnValue")}, {"return": returns[name]} if name in returns else {}
        else:
            shown, said = {item["name"]: item["value"] for item in event["arguments"]}, calls.get(name, {})
        if len(shown) == len(said) == 1:
            said = dict(zip(shown, said.values(), strict=True))
        for value, one in said.items():
            seen.add(f"{event['eventType']} {name}")
            if without_addresses(shown.get(value)) != one:
                wrong.append(f"{name}.{value}:\n  event   {json.dumps(shown.get(value))}\n  program {json.dumps(one)}")
    return wrong, seen


async def _events(strobe: Strobe, path: Path, pattern: str, go: Path) -> list[dict[str, Any]]:
    """The program waits for the file `go`, which is made once all hooks have types."""
    session = await strobe.launch(path, str(go), root=TARGETS, trace=[pattern])
    deadline = time.monotonic() + TYPED_S
    while (state := await strobe.call("debug_trace", sessionId=session))["typedFunctions"] < state["hookedFunctions"]:
        assert time.monotonic() < deadline, state
        await asyncio.sleep(0.05)
    go.touch()
    status = await strobe.until_ended(session)
    assert status["status"] == "exited" and status["exitCode"] == 0
    return [event for kind in ("function_enter", "function_exit") for event in await strobe.events(session, eventType=kind, verbose=True)]
