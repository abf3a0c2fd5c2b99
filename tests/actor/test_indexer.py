"""The indexer as an actor: real process, real worker, real files."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from strobe.client import Client
from strobe.errors import Code, StrobeError
from strobe.model.probe import Module, Place
from strobe.protocol.indexer import FramesReply, Load, ModuleFacts, Plans, PlansReply, Resolve, ResolveReply, Symbolise
from tests.harness.gdb import entries
from tests.harness.node import node
from tests.harness.targets import TARGETS, program, require

DEADLINE_S = 30.0


@pytest.fixture(scope="module")
async def client(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Client]:
    """Of a node with an indexer only."""
    async with node(tmp_path_factory.mktemp("indexer") / "home", roles=("indexer",)) as connected:
        yield connected


async def _resolve(client: Client, path: Path, *patterns: str, root: str = "/nonexistent", deadline_s: float = DEADLINE_S) -> ResolveReply:
    ask = Resolve(patterns=list(patterns), modules=[str(path)], main_modules=[str(path)], project_root=root)
    reply: ResolveReply = await client.ask("indexer", ask, deadline_s=deadline_s)
    return reply


async def test_load_resolve_plans(client: Client) -> None:
    path = program("indexer/names.cpp", "-O0")
    facts: ModuleFacts = await client.ask("indexer", Load(path=str(path)), deadline_s=DEADLINE_S)
    assert facts.has_symbols and facts.has_debug_info and facts.build_id and facts.functions > 50
    reply = await _resolve(client, path, "auth::**", "net::Connection::send", "nosuch_function")
    assert {place.function for place in reply.places if place.pattern == "auth::**"} == {
        "auth::validate", "auth::token::validate", "auth::token::refresh", "auth::token::jwt::validate",
    }  # fmt: skip
    assert [warning.matched for warning in reply.patterns] == [4, 1, 0]
    addresses = entries(path)
    assert all(place.offset == addresses.get(place.function_raw, place.offset) for place in reply.places)
    plans: PlansReply = await client.ask("indexer", Plans(places=reply.places), deadline_s=DEADLINE_S)
    assert plans.complete and all(plan.typed for plan in plans.plans)
    send = plans.plans[[place.function for place in reply.places].index("net::Connection::send")]
    assert [(value.name, value.type_name, value.scalar) for value in send.arguments] == [
        ("this", "net::Connection *", "pointer"), ("text", "const char *", "cstring"), ("length", "int", "int"),
    ]  # fmt: skip


async def test_usercode_and_file_wait_for_the_line_index(client: Client, tmp_path: Path) -> None:
    path = program("indexer/names.cpp", "-O0")
    mine = await _resolve(client, path, "@usercode", root=str(TARGETS))
    names = {place.function for place in mine.places}
    assert {"main", "auth::validate", "net::twice<int>", "outer::Local::go"} <= names
    assert not [name for name in names if name.startswith(("std::", "_"))]
    assert all(place.file and place.file.endswith("names.cpp") and place.line for place in mine.places)
    by_file = await _resolve(client, path, "@file:names.c")
    assert {place.function for place in by_file.places} == names
    nothing = await _resolve(client, path, "@usercode", root=str(tmp_path))
    assert not nothing.places and str(TARGETS) in (nothing.patterns[0].explanation or "")


async def test_symbolise_gives_lines_and_inlined_calls(client: Client) -> None:
    path = program("indexer/deep_crash.cpp", "-O2")
    address = entries(path)["on_signal"]
    bias = 0x7F0000000000
    module = Module(path=str(path), bias=bias, start=bias, end=bias + 0x100000)
    command = [require("addr2line"), "-e", str(path), "-i", "-f", "-s", hex(address + 60)]
    listing = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    reply: FramesReply = await client.ask("indexer", Symbolise(modules=[module], addresses=[bias + address + 60]), deadline_s=DEADLINE_S)
    expected = [line.split(":")[1].split()[0] for line in listing.splitlines() if ":" in line]
    assert [str(frame.line) for frame in reply.frames] == expected
    assert reply.frames[-1].function == "on_signal" and reply.frames[-1].offset == 60
    assert all(frame.inlined for frame in reply.frames[:-1])


async def test_errors_name_what_is_wrong(client: Client, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n")
    cases = {str(tmp_path / "missing"): "No such file", str(script): "not an ELF", str(tmp_path): "not an ELF"}
    for path, words in cases.items():
        with pytest.raises(StrobeError) as caught:
            await client.ask("indexer", Load(path=path), deadline_s=DEADLINE_S)
        assert caught.value.code == Code.VALIDATION_ERROR
        assert path in caught.value.what and words in caught.value.what
    with pytest.raises(StrobeError) as caught:
        await _resolve(client, script, "a|b")
    assert caught.value.code == Code.INVALID_PATTERN, caught.value


async def test_a_killed_worker_is_replaced(client: Client) -> None:
    path = program("indexer/names.cpp", "-O0")
    await _resolve(client, path, "main")
    for _ in range(3):
        workers = _workers()
        assert workers
        for pid in workers:
            os.kill(pid, signal.SIGKILL)
        await _until(lambda before=set(workers): not before & set(_workers()))  # type: ignore[misc]
        assert (await _resolve(client, path, "main")).places


async def test_a_stopped_worker_is_late_not_forever(client: Client) -> None:
    path = program("indexer/names.cpp", "-O0")
    await _resolve(client, path, "main")
    for pid in _workers():
        os.kill(pid, signal.SIGSTOP)
    begin = time.monotonic()
    with pytest.raises(StrobeError) as caught:
        await _resolve(client, path, "main", deadline_s=1.0)
    assert caught.value.code == Code.TIMEOUT and time.monotonic() - begin < 10
    assert (await _resolve(client, path, "main")).places


async def test_raw_plans_without_debug_info(client: Client) -> None:
    path = program("indexer/abi.c", "-O2", "-g0")
    reply = await _resolve(client, path, "case_ints")
    plans: PlansReply = await client.ask("indexer", Plans(places=reply.places), deadline_s=DEADLINE_S)
    assert [plan.typed for plan in plans.plans] == [False]
    assert [value.name for value in plans.plans[0].arguments] == ["rdi", "rsi", "rdx", "rcx", "r8", "r9"]
    gone = Place(pattern="x", function="x", function_raw="x", full_name="x", module="/nonexistent", offset=1, size=1)
    plans = await client.ask("indexer", Plans(places=[gone]), deadline_s=DEADLINE_S)
    assert not plans.plans[0].typed


def _workers() -> list[int]:
    """Worker processes of the indexers that descend from this test's node."""
    listing = subprocess.run(["ps", "-e", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 2) for line in listing.splitlines()]
    parents = {int(pid): int(parent) for pid, parent, *_ in rows}
    workers = [int(pid) for pid, _, *rest in rows if rest and "actors.indexer.worker" in rest[0]]
    return [pid for pid in workers if _is_ours(parents.get(pid, 0))]


def _is_ours(actor: int) -> bool:
    """The node is no child of ours (it leads a session of its own), but it has our STROBE_HOME."""
    try:
        environment = Path(f"/proc/{actor}/environ").read_bytes()
    except OSError:
        return False
    return f"STROBE_HOME={os.environ.get('STROBE_HOME')}\0".encode() in environment


async def _until(true: Callable[[], bool], deadline_s: float = 10.0) -> None:
    async with asyncio.timeout(deadline_s):
        while not true():
            await asyncio.sleep(0.02)
