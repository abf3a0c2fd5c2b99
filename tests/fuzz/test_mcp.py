"""Malformed lines and arguments through `strobe mcp`: each request answered once, with a result or a clear error; no death, no growth."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest

from strobe.client import Client
from strobe.errors import Code
from tests.fuzz.processes import generations, grown, resident
from tests.fuzz.strange import deep, spoiled, spoiled_bytes, strange
from tests.harness.node import all_ready, assert_nothing_left, environment, run, stop
from tests.harness.stdio import Shim
from tests.harness.targets import TARGETS, program

LINES: Final = 400
LINES_OFTEN: Final = 10_000
CHUNK: Final = 25
REPLY_BYTES_MAX: Final = 400_000  # text and structured content of 4,000 tokens, and the JSON around them, are far below
CODES: Final = {str(code) for code in Code}
OFTEN: Final = pytest.param(LINES_OFTEN, marks=[pytest.mark.full, pytest.mark.alone])


class Place:
    """A node, a connected shim, and a session whose target waits for its standard input."""

    def __init__(self, shim: Shim) -> None:
        self.shim = shim
        self.number = 10
        launched = self.call("debug_launch", command=str(program("echo.c", "-O1")), projectRoot=str(TARGETS), stdin={"open": True})
        self.session: str = launched["result"]["structuredContent"]["sessionId"]
        self.before = run(_generations())
        self.sizes: dict[int, int] = {}

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        self.number += 1
        self.shim.send("tools/call", self.number, name=tool, arguments=arguments)
        return self.answer(self.number)

    def answer(self, number: int) -> dict[str, Any]:
        """The answer to request `number`; what else is said meanwhile must be well-formed."""
        while True:
            message = self.shim.receive()
            check(message)
            if message.get("id") == number and "method" not in message:
                return message

    def check_whole(self) -> None:
        after = run(_generations())
        assert {name: after.get(name) for name in self.before} == self.before, "a process of the node died"
        sizes = resident([pid for pid, _ in self.before.values()])
        self.sizes = self.sizes or sizes
        assert not grown(self.sizes, sizes)


async def _generations() -> dict[str, tuple[int | None, int]]:
    async with Client() as client:
        await all_ready(client)
        return await generations(client)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with environment(tmp_path, None, {}):
        shim = Shim()
        try:
            shim.open()
            made = Place(shim)
            yield made
            assert made.call("debug_session", action="status", sessionId=made.session)["result"]["structuredContent"]["status"] == "running"
            for one in made.call("debug_session", action="list")["result"]["structuredContent"]["sessions"]:
                made.call("debug_session", action="stop", sessionId=one["sessionId"], kill=True)
        finally:
            shim.end()
            run(stop(tmp_path))
    assert_nothing_left(tmp_path)


def check(message: dict[str, Any]) -> None:
    assert message["jsonrpc"] == "2.0", message
    assert "Traceback" not in str(message) and "pydantic" not in str(message), message
    assert len(json.dumps(message)) < REPLY_BYTES_MAX
    result = message.get("result")
    if isinstance(result, dict) and result.get("isError"):
        error = result["structuredContent"]
        assert error["code"] in CODES and error["what"] and error["nextStep"], error


@pytest.mark.parametrize("lines", [LINES, OFTEN])
def test_lines(place: Place, lines: int) -> None:
    answers: Counter[str] = Counter()
    for start in range(0, lines, CHUNK):
        chance = Random(f"lines {start}")
        for _ in range(CHUNK):
            place.shim.write(_line(chance, place.session).replace(b"\n", b" ") + b"\n")
        place.number += 1
        place.shim.send("ping", place.number)
        answers["result" if "result" in place.answer(place.number) else "error"] += 1
        if start % 500 == 0:
            place.check_whole()
    assert answers == {"result": lines // CHUNK}
    place.check_whole()


def _line(chance: Random, session: str) -> bytes:
    """With ids that no other request of this test has."""
    good = chance.choice(_good(session))
    way = chance.randrange(7)
    if way == 0:
        return chance.randbytes(chance.randrange(200))
    if way == 1:
        return spoiled_bytes(json.dumps(good).encode(), chance)
    if way == 2:
        return json.dumps(strange(chance)).encode()
    if way == 3:
        return json.dumps([good, spoiled(good, chance)]).encode()
    if way == 4:
        return chance.choice((b"[" * 5000, b'{"a":' * 5000, b"\xef\xbb\xbf{}", b"\xff\xfe{\0}\0", b"{" + b" " * 70_000, json.dumps(deep(400)).encode()))
    if way == 5 and chance.random() < 0.05:
        return json.dumps({**good, "params": {"x": "y" * 2_000_000}}).encode()
    return json.dumps(spoiled(good, chance)).encode()


def _good(session: str) -> list[dict[str, Any]]:
    call = {"name": "debug_session", "arguments": {"action": "status", "sessionId": session}}
    methods: list[tuple[str, dict[str, Any]]] = [
        ("ping", {}), ("tools/list", {"cursor": None}), ("tools/call", call), ("resources/list", {}), ("prompts/get", {"name": "x"}),
        ("logging/setLevel", {"level": "debug"}), ("completion/complete", {"ref": {"type": "ref/prompt", "name": "x"}}), ("nothing/such", {"a": 1}),
    ]  # fmt: skip
    asked = [{"jsonrpc": "2.0", "id": f"fuzz-{number}", "method": method, "params": params} for number, (method, params) in enumerate(methods)]
    told = [{"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1, "progress": 2}}]
    return [*asked, *told, {"jsonrpc": "2.0", "id": "fuzz-r", "result": {}}, {"jsonrpc": "2.0", "id": "fuzz-e", "error": {"code": 1, "message": "x"}}]


@pytest.mark.parametrize("calls", [LINES, OFTEN])
def test_arguments(place: Place, calls: int) -> None:
    outcomes: Counter[str] = Counter()
    for number in range(calls):
        chance = Random(f"arguments {number}")
        tool, good = chance.choice(list(_arguments(place.session).items()))
        answer = place.call(tool, **spoiled(good, chance))
        result = answer.get("result", {})
        outcomes[result["structuredContent"]["code"] if result.get("isError") else "result" if "result" in answer else "error"] += 1
        if number % 200 == 0:
            place.check_whole()
    place.check_whole()
    assert outcomes["VALIDATION_ERROR"] > calls // 3 and outcomes["result"] and outcomes["SESSION_NOT_FOUND"], outcomes


def _arguments(session: str) -> dict[str, dict[str, Any]]:
    """Good ones, with everything in them that the tools take; the program of the launch is none."""
    return {
        "debug_launch": {
            "command": "/nonexistent/program", "args": ["a"], "cwd": "/", "projectRoot": "/tmp", "env": {"A": "b"}, "symbolsPath": "/tmp",
            "stdin": {"open": True}, "pty": False, "maxTokens": 1000,
        },
        "debug_trace": {
            "sessionId": session, "add": ["echo_*"], "remove": ["nothing"], "serializationDepth": 3, "projectRoot": "/tmp",
            "watches": {"add": [{"variable": "environ", "label": "w"}], "remove": ["v"]}, "budget": {"eventsPerSecond": 1000},
        },
        "debug_query": {
            "sessionId": session, "eventType": "stdout", "function": {"contains": "a"}, "sourceFile": {"contains": ".c"}, "returnValue": {"equals": 1},
            "argument": {"name": "a.b", "equals": 2}, "threadName": {"contains": "e"}, "threadId": 1, "pid": 1, "timeFrom": 0, "timeTo": "-1s",
            "minDurationNs": 5, "orderBy": "time", "limit": 5, "offset": 0, "verbose": True, "view": "events", "maxTokens": 2000,
        },
        "debug_memory": {"sessionId": session, "action": "read", "targets": [{"variable": "environ"}, {"address": "0x1000", "type": "u8"}], "depth": 2},
        "debug_session": {"action": "status", "sessionId": session, "retain": False, "kill": False, "maxTokens": 500},
    }  # fmt: skip
