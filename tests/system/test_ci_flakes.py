"""What strobe-ci makes of traced runs, on sessions of a real program: the first call that a failing run does otherwise, and the traces as evidence."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from strobe.ci.flakes import first_divergence, flaky_tests
from strobe.ci.gathered import Gathered, build_id
from strobe.ci.link import Link, linked
from strobe.ci.suite import Outcome
from strobe.ci.traced import let_go
from strobe.evidence.reading import Bundle
from strobe.evidence.traces import first_events
from strobe.model.testing import Failure, TestCase, TestResult, TestStatus
from strobe.protocol.store import ListSessions
from strobe.supervisor.start import node_pid
from tests.harness.targets import TARGETS, program

pytestmark = pytest.mark.anyio
TRACED = ["turn", "price_of", "log_sum", "keep", "rate", "discount", "worker", "tick"]
END_S = 60.0


async def traced(link: Link, how: str) -> Outcome:
    """A run of one test, whose program does what it does in its own session."""
    await link.call("debug_trace", {"add": TRACED})
    target = program("divergent.c", "-O1")
    launched = await link.call("debug_launch", {"command": str(target), "args": [how, "20"], "projectRoot": str(TARGETS)})
    session = launched["sessionId"]
    deadline = time.monotonic() + END_S
    while (await link.call("debug_session", {"action": "status", "sessionId": session}))["status"] not in ("exited", "crashed"):
        assert time.monotonic() < deadline
    good = how == "noise"
    failures = [] if good else [Failure(name="t", file="divergent.c", line=40, message=f"expected 3 but was 7 in {how}")]
    case = TestCase(name="t", suite=str(target), status=TestStatus.PASSED if good else TestStatus.FAILED, failures=failures)
    result = TestResult(framework="generic", passed=int(good), failed=int(not good), skipped=0, stuck=0, duration_ms=1)
    return Outcome("r", "generic", result, [case], ["last line, password=hunter2hunter2"], None, session, [], time.time())


async def test_the_first_divergence_of_a_flaky_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`tick` is given another number in each run, which means nothing: passing runs differ in it too."""
    monkeypatch.setenv("STROBE_HOME", str(tmp_path / "home"))
    path = tmp_path / "evidence.zip"
    with Gathered(TARGETS) as gathered:
        async with linked(str(tmp_path), gathered.redactor) as link:
            outcomes = [await traced(link, how) for how in ("noise", "noise", "noise returns", "noise")]
            [flaky] = flaky_tests(outcomes)
            assert [cluster.runs for cluster in flaky.clusters] == [[1, 2, 4], [3]]
            await first_divergence(link, flaky, outcomes)
            assert flaky.divergence is not None, flaky
            assert flaky.divergence["ignored"] == ["tick(time)"]
            first = flaky.divergence["rows"][0]
            assert (first["kind"], first["function"]) == ("returnValue", "rate"), flaky.divergence
            assert first["differs"] == [{"path": "ret", "here": 7, "there": 3}]
            assert any("rate returned something else" in line for line in flaky.lines())
            await _all_kept(link, gathered, flaky.divergence)
            gathered.write(path, outcomes[2], ["strobe-ci", "--repeat", "4", "--token", "abcdefgh12345678"], {"flakes.json": {"flaky": [flaky.told()]}})
            for outcome in outcomes:
                await let_go(link, str(outcome.session_id))
            assert (await link.node.ask("store", ListSessions())).sessions == []
    assert node_pid(tmp_path / "home") is None
    _check(path, flaky.divergence["failing"])


async def _all_kept(link: Link, gathered: Gathered, divergence: dict[str, Any]) -> None:
    for name in ("failing", "passing"):
        await gathered.keep(link, divergence[name])


def _check(path: Path, failing: str) -> None:
    target = program("divergent.c", "-O1")
    with Bundle(path) as bundle:
        assert bundle.manifest.build_ids == {str(target): build_id(target)} and build_id(target)
        assert bundle.manifest.command[-1] == "<redacted>"
        assert "sources/divergent.c" in bundle.names() and bundle.read("sources/divergent.c") == (TARGETS / "divergent.c").read_bytes()
        assert len([name for name in bundle.names() if name.startswith("traces/")]) == 2
        events, total = first_events(bundle.read(f"traces/{failing}.parquet"), 10_000)
        assert total == len(events)
        assert _found(events, lambda event: event["function"] == "rate" and event.get("returnValue") == 7)
        assert _found(events, lambda event: event["function"] == "turn" and event["arguments"][1]["value"]["label"] == "odd")
        assert json.loads(bundle.read("flakes.json"))["flaky"][0]["divergence"]["rows"]
        assert b"hunter2" not in bundle.read("output/last-lines.txt")


def _found(events: list[dict[str, Any]], wanted: Callable[[dict[str, Any]], bool]) -> bool:
    return any(wanted(event) for event in events if event.get("function") and event.get("arguments"))
