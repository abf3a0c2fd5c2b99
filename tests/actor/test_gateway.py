"""The gateway as a process under the real supervisor, spoken to as `strobe mcp` does. No other actor runs here."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from strobe.client import Client
from strobe.protocol import shim
from tests.harness.node import actor, node, run, status, until
from tests.harness.shim import Dealer, dealer

ROOT = Path(__file__).resolve().parents[2]
CARD = json.loads((ROOT / "strobe/cli/card.json").read_text(encoding="utf-8"))
META = "io.modelcontextprotocol"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One node for all tests of this file."""
    folder = tmp_path_factory.mktemp("node")
    running = node(folder, roles=("gateway",))
    with asyncio.Runner() as runner:
        runner.run(running.__aenter__())
        yield folder
        runner.run(running.__aexit__(None, None, None))


def modern(version: str) -> dict[str, Any]:
    return {"_meta": {f"{META}/protocolVersion": version, f"{META}/clientInfo": {"name": "test", "version": "1"}, f"{META}/clientCapabilities": {}}}


def code(answer: dict[str, Any]) -> str:
    """Error code of a tool's answer."""
    assert answer["result"]["isError"] is True, answer
    text = answer["result"]["content"][0]["text"]
    wire = answer["result"]["structuredContent"]
    assert text.startswith(f"{wire['code']}: {wire['what']}")
    assert wire["nextStep"] in text
    assert "Traceback" not in json.dumps(answer)
    return str(wire["code"])


def test_card_is_what_the_server_says(home: Path) -> None:
    """For each protocol version, compared as bytes."""

    async def main() -> None:
        for version, expected in CARD["initialize"].items():
            async with dealer(home) as wire:
                await wire.hello()
                assert as_bytes((await wire.initialize(version))["result"]) == as_bytes(expected)
                assert as_bytes((await wire.request(2, "tools/list"))["result"]) == as_bytes(CARD["tools"][version])
        for version, expected in CARD["discover"].items():
            async with dealer(home) as wire:
                await wire.hello()
                assert as_bytes((await wire.request(1, "server/discover", modern(version)))["result"]) == as_bytes(expected)
                assert as_bytes((await wire.request(2, "tools/list", modern(version)))["result"]) == as_bytes(CARD["tools"][version])

    run(main())


def as_bytes(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def test_unknown_protocol_version_gets_the_latest(home: Path) -> None:
    async def main() -> None:
        async with dealer(home) as wire:
            await wire.hello()
            assert (await wire.initialize("1999-01-01"))["result"]["protocolVersion"] == CARD["latest"]

    run(main())


def test_calls_without_the_other_actors(home: Path) -> None:
    """Each failure is an answer with a code, the value at fault and the next step."""

    async def main() -> None:
        async with dealer(home) as wire:
            await wire.hello()
            await wire.initialize()
            absent = await wire.call(2, "debug_query", sessionId="x")
            assert code(absent) == "ACTOR_UNAVAILABLE"
            assert "store" in absent["result"]["structuredContent"]["what"]
            assert absent["result"]["_meta"]["strobe/requestId"]
            misspelt = await wire.call(3, "debug_query", sessionId="x", functon={"equals": "a"})
            assert code(misspelt) == "VALIDATION_ERROR"
            assert misspelt["result"]["structuredContent"]["value"] == "functon"
            assert "`function`" in misspelt["result"]["structuredContent"]["nextStep"]
            unknown = await wire.call(4, "debug_everything")
            assert unknown["error"]["code"] == -32602
            assert "debug_query" in unknown["error"]["message"]
            assert code(await wire.call(5, "debug_list_sessions")) == "ACTOR_UNAVAILABLE"
            assert code(await wire.call(6, "debug_launch", command="ls", projectRoot="/", cwd="/no/such")) == "VALIDATION_ERROR"

    run(main())


def test_frames_that_are_no_requests(home: Path) -> None:
    async def main() -> None:
        async with dealer(home) as wire:
            await wire.send(shim.MCP, {"jsonrpc": "2.0", "id": 9, "method": "tools/list"})
            assert await wire.receive() == (shim.AGAIN, {})
            await wire.hello()
            await wire.send(shim.MCP, b"{not json")
            assert (await wire.receive())[1]["error"]["code"] == -32700
            await wire.send(shim.MCP, {"id": 5, "no": "jsonrpc"})
            assert (await wire.receive())[1] == {"jsonrpc": "2.0", "id": 5, "error": {"code": -32600, "message": "Not a JSON-RPC 2.0 message."}}
            await wire.send(shim.PING)
            assert (await wire.receive())[0] == shim.PONG
            await wire.initialize()
            assert (await wire.request(3, "no/such/method"))["error"]["code"] == -32601

    run(main())


def test_a_flood_is_answered_in_full(home: Path) -> None:
    """Every request has one answer, too many at once a LIMIT_EXCEEDED or -32000; another client is served meanwhile."""

    async def main() -> None:
        async with dealer(home) as wire, dealer(home) as other:
            for each in (wire, other):
                await each.hello()
                await each.initialize()
            for number in range(1000, 1600):
                arguments = {"name": "debug_session", "arguments": {"action": "list"}}
                await wire.send(shim.MCP, {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": arguments})
            assert code(await other.call(2, "debug_session", action="list")) == "ACTOR_UNAVAILABLE"
            answers = [(await wire.receive())[1] for _ in range(600)]
            assert sorted(answer["id"] for answer in answers) == list(range(1000, 1600))
            for answer in answers:
                assert answer.get("error", {}).get("code") == -32000 or code(answer) in ("ACTOR_UNAVAILABLE", "LIMIT_EXCEEDED")

    run(main())


def test_clients_are_counted_and_leave(home: Path) -> None:
    async def main() -> None:
        async with Client(home) as client:

            async def counted(number: int) -> None:
                async def same() -> bool:
                    return (await status(client)).clients == number

                await until(same)

            async with dealer(home) as one, dealer(home) as two:
                await one.hello()
                await two.hello()
                await counted(2)
                await one.send(shim.BYE)
                await counted(1)
                await two.send(shim.BYE)
                await counted(0)

    run(main())


def test_a_killed_gateway_comes_back_and_asks_who_is_there(home: Path) -> None:
    async def main() -> None:
        async with Client(home) as client, dealer(home) as wire:
            first = await wire.hello()
            row = await actor(client, "gateway")
            assert row.pid is not None
            os.kill(row.pid, signal.SIGKILL)
            await heard_again(wire)
            second = await wire.hello()
            assert second["generation"] > first["generation"]
            assert (await wire.initialize())["result"]["serverInfo"]["name"] == "strobe"

    run(main())


async def heard_again(wire: Dealer) -> None:
    """Pings until the new gateway says that it does not know us."""
    async with asyncio.timeout(20):
        while True:
            await wire.send(shim.PING)
            try:
                async with asyncio.timeout(0.5):
                    kind, _ = await wire.receive()
            except TimeoutError:
                continue
            if kind == shim.AGAIN:
                return


@pytest.mark.parametrize("listed", [False, True])
def test_former_names_are_listed_with_the_setting(home: Path, listed: bool) -> None:
    async def main() -> None:
        async with dealer(home) as wire:
            await wire.hello()
            await wire.initialize()
            (home / "settings.json").write_text(json.dumps({"mcp.legacyTools": listed}))
            names = [tool["name"] for tool in (await wire.request(2, "tools/list"))["result"]["tools"]]
            assert ("debug_stop" in names) is listed

    run(main())
