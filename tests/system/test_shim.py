"""`strobe mcp` as a client meets it: the byte stream on stdin and stdout, a cold node, gateways and nodes that die, its own end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from strobe.client import Client
from strobe.protocol.shim import FRAME_BYTES_MAX
from strobe.protocol.supervisor import ActorStatus, Status, StatusReply
from strobe.supervisor.start import ensure_node, node_pid
from tests.harness.node import assert_nothing_left, environment, processes_of, run, stop, until
from tests.harness.stdio import VERSION, Shim

ROLES = ("gateway", "store")


@pytest.fixture
def cold(tmp_path: Path) -> Iterator[Path]:
    """A home without a node; whatever the test started is ended, and nothing is left."""
    with environment(tmp_path, ROLES, {}):
        yield tmp_path
        run(until(lambda: settled(tmp_path)))
        run(stop(tmp_path))
        assert_nothing_left(tmp_path)


async def settled(home: Path) -> bool:
    """No node is on its way up: one that a shim has just started has its lock, or there is none."""
    return node_pid(home) is not None or not any("node --foreground" in process for process in processes_of(home))


@pytest.fixture
def shim(cold: Path) -> Iterator[Shim]:
    assert node_pid(cold) is None
    made = Shim()
    yield made
    made.end()


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home with a node, for the tests that do not mind who used it before."""
    home = tmp_path_factory.mktemp("warm")
    with environment(home, ROLES, {}):
        ensure_node()
        yield home
        run(stop(home))
    assert_nothing_left(home)


@pytest.fixture
def warm_shim(warm: Path) -> Iterator[Shim]:
    made = Shim()
    yield made
    made.end()


def actor(name: str) -> ActorStatus:
    async def ask() -> ActorStatus:
        async with Client() as client:
            reply: StatusReply = await client.ask("supervisor", Status())
            return next(row for row in reply.actors if row.name == name)

    return run(ask())


def pid_of(name: str) -> int:
    pid = actor(name).pid
    assert pid is not None
    return pid


def sessions_answer(shim: Shim, number: int) -> dict[str, Any]:
    answer = shim.call(number, "debug_session", action="list")
    assert answer["result"]["structuredContent"] == {"sessions": []}, answer
    return answer


def test_cold_start_answers_initialize_and_tools_before_the_node_is_up(shim: Shim, cold: Path) -> None:
    opened = shim.open()
    assert opened["result"]["protocolVersion"] == VERSION and opened["result"]["serverInfo"]["name"] == "strobe"
    shim.send("tools/list", 2)
    tools = shim.answer(2)["result"]["tools"]
    assert {"debug_launch", "debug_query", "debug_trace", "debug_session"} <= {tool["name"] for tool in tools}
    log = cold / "logs" / "gateway.jsonl"
    assert not log.exists() or '"ready"' not in log.read_text(), "the node was quicker: nothing shown"
    sessions_answer(shim, 3)
    shim.send("tools/list", 4)
    assert shim.answer(4)["result"]["tools"] == tools, "card and gateway differ"


def test_killed_gateway_is_replaced_without_the_client_noticing(shim: Shim) -> None:
    shim.open()
    for number in range(2, 4):
        sessions_answer(shim, number)
        before = pid_of("gateway")
        os.kill(before, signal.SIGKILL)
        while True:
            answer = shim.call(100 + number, "debug_session", action="list")
            if "error" not in answer:
                break
            assert answer["error"]["code"] == -32000 and "again" in answer["error"]["message"]
        assert pid_of("gateway") != before


def test_request_in_flight_at_a_gateways_death_is_answered(warm_shim: Shim) -> None:
    warm_shim.open()
    sessions_answer(warm_shim, 2)
    pid = pid_of("gateway")
    os.kill(pid, signal.SIGSTOP)
    warm_shim.send("tools/call", 3, name="debug_session", arguments={"action": "list"})
    with pytest.raises(AssertionError, match="no answer"):
        warm_shim.receive(0.3)
    os.kill(pid, signal.SIGKILL)
    answer = warm_shim.answer(3)
    assert answer["error"]["code"] == -32000
    assert "tools/call" in answer["error"]["message"] and "try again" in answer["error"]["message"]
    sessions_answer(warm_shim, 4)


def test_killed_node_is_started_again(shim: Shim, cold: Path) -> None:
    shim.open()
    sessions_answer(shim, 2)
    first = node_pid(cold)
    assert first is not None
    os.kill(first, signal.SIGKILL)
    number = 3
    while "error" in (answer := shim.call(number, "debug_session", action="list")):
        assert answer["error"]["code"] == -32000
        number += 1
    assert answer["result"]["structuredContent"] == {"sessions": []}
    assert node_pid(cold) not in (None, first)


def test_two_shims_starting_at_once_share_one_node(cold: Path) -> None:
    shims = [Shim(), Shim(), Shim()]
    try:
        for shim in shims:
            shim.open()
        for shim in shims:
            sessions_answer(shim, 2)
        log = (cold / "logs" / "supervisor.jsonl").read_text()
        assert log.count('"node starts"') == 1
    finally:
        for shim in shims:
            shim.end()


def test_end_of_stdin_ends_the_shim_within_milliseconds(warm_shim: Shim) -> None:
    warm_shim.open()
    sessions_answer(warm_shim, 2)
    assert warm_shim.process.stdin is not None
    began = time.monotonic()
    warm_shim.process.stdin.close()
    assert warm_shim.process.wait(5) == 0
    assert time.monotonic() - began < 1


def test_requests_in_flight_at_the_end_of_stdin_are_still_answered(warm_shim: Shim) -> None:
    warm_shim.open()
    sessions_answer(warm_shim, 2)
    for number in range(3, 8):
        warm_shim.send("tools/call", number, name="debug_session", arguments={"action": "list"})
    assert warm_shim.process.stdin is not None
    warm_shim.process.stdin.close()
    assert sorted(warm_shim.receive()["id"] for _ in range(5)) == [3, 4, 5, 6, 7]
    assert warm_shim.process.wait(5) == 0


def test_requests_piped_in_are_answered_though_no_node_runs_yet(shim: Shim) -> None:
    shim.open()
    shim.send("tools/call", 2, name="debug_session", arguments={"action": "list"})
    assert shim.process.stdin is not None
    shim.process.stdin.close()
    assert shim.answer(2)["result"]["structuredContent"] == {"sessions": []}
    assert shim.process.wait(5) == 0


@pytest.mark.parametrize("ending", ["reader gone", "SIGTERM", "cancelled"])
def test_what_is_in_flight_does_not_hold_up_an_end(warm_shim: Shim, ending: str) -> None:
    warm_shim.open()
    sessions_answer(warm_shim, 2)
    gateway = pid_of("gateway")
    os.kill(gateway, signal.SIGSTOP)
    try:
        warm_shim.send("tools/call", 3, name="debug_session", arguments={"action": "list"})
        if ending == "cancelled":
            warm_shim.send("notifications/cancelled", requestId=3)
        assert warm_shim.process.stdin is not None and warm_shim.process.stdout is not None
        warm_shim.process.stdin.close()
        if ending != "cancelled":
            with pytest.raises(subprocess.TimeoutExpired):
                warm_shim.process.wait(0.5)
        began = time.monotonic()
        if ending == "SIGTERM":
            warm_shim.process.terminate()
        elif ending == "reader gone":
            warm_shim.process.stdout.close()
            warm_shim.process.stdout = subprocess.Popen(["true"], stdout=subprocess.PIPE).stdout  # for `end` to close
        assert warm_shim.process.wait(5) == 0
        assert time.monotonic() - began < 2
    finally:
        os.kill(gateway, signal.SIGCONT)


def test_reader_that_went_away_ends_the_shim(warm_shim: Shim) -> None:
    warm_shim.open()
    sessions_answer(warm_shim, 2)
    assert warm_shim.process.stdout is not None
    warm_shim.process.stdout.close()
    assert warm_shim.process.wait(20) == 0
    warm_shim.process.stdout = subprocess.Popen(["true"], stdout=subprocess.PIPE).stdout  # for `end` to close


def test_line_over_the_limit_is_refused_and_the_next_is_served(warm_shim: Shim) -> None:
    warm_shim.open()
    sessions_answer(warm_shim, 2)
    warm_shim.write(b'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"debug_session","arguments":{"x":"')
    for _ in range(100):
        warm_shim.write(b"x" * (1 << 20))
    warm_shim.write(b'"}}}\n')
    answer = warm_shim.answer(3)
    assert answer["error"]["code"] == -32600 and f"{FRAME_BYTES_MAX:,}" in answer["error"]["message"]
    peak_kib = next(int(line.split()[1]) for line in Path(f"/proc/{warm_shim.process.pid}/status").read_text().splitlines() if line.startswith("VmHWM"))
    assert peak_kib < 200 << 10, f"{peak_kib} KiB for one line"
    sessions_answer(warm_shim, 4)


def test_lines_in_pieces_and_several_at_once(warm_shim: Shim) -> None:
    warm_shim.open()
    sessions_answer(warm_shim, 2)
    whole = b"".join(json.dumps({"jsonrpc": "2.0", "id": n, "method": "ping"}).encode() + b"\r\n\n" for n in range(3, 20))
    for start in range(0, len(whole), 7):
        warm_shim.write(whole[start : start + 7])
    assert [warm_shim.receive()["id"] for _ in range(17)] == list(range(3, 20))


def test_node_that_does_not_start_is_told(cold: Path) -> None:
    (cold / "logs").mkdir(mode=0o700)
    (cold / "logs" / "supervisor.jsonl").mkdir()  # where its log should go: the node fails at once
    shim = Shim()
    try:
        shim.open()
        answer = shim.call(2, "debug_session", action="list")
        assert answer["error"]["code"] == -32000
        assert "supervisor.stderr" in answer["error"]["message"]
    finally:
        shim.end()


def test_only_stdlib_and_zmq_are_imported() -> None:
    """What the shim costs to start is what it imports; the rest of its time is measured in tests/bench."""
    code = "import sys, strobe.cli.mcp, strobe.cli.gateway_link; print('\\n'.join(sorted({n.partition('.')[0] for n in sys.modules})))"
    command = [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(Path.cwd())!r}); {code}"]
    names = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    foreign = {name for name in names if name not in sys.stdlib_module_names and not name.startswith(("_", "strobe", "zmq"))}
    assert foreign <= {"sitecustomize", "usercustomize", "distutils", "cython_runtime"}, foreign
    assert not {"asyncio", "subprocess", "logging"} & set(names)
