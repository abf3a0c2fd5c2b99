"""strobe-ctl against a real node with a recorded session: every command, for people and as JSON."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from strobe.client import Client
from strobe.ctl.app import app
from strobe.protocol.supervisor import Status
from strobe.supervisor.start import ensure_node, node_pid
from tests.harness.node import all_ready, assert_nothing_left, environment, run, stop
from tests.harness.shim import dealer


class Node:
    """A home with a node and one finished session of /bin/echo."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.session = ""
        self.request = ""

    async def record(self) -> None:
        async with Client() as client:
            await all_ready(client, within_s=60)
        async with dealer(self.home) as shim:
            await shim.hello()
            await shim.initialize()
            launched = (await shim.call(2, "debug_launch", command="/bin/echo", args=["recorded [bold]line"], projectRoot="/tmp"))["result"]
            assert not launched.get("isError"), launched
            self.session = launched["structuredContent"]["sessionId"]
            self.request = launched["_meta"]["strobe/requestId"]


def ctl(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def as_json(*arguments: str) -> Any:
    result = ctl(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    made = Node(tmp_path_factory.mktemp("ctl"))
    with environment(made.home, None, {}):
        ensure_node()
        try:
            run(made.record())
            yield made
        finally:
            run(stop(made.home))
        assert_nothing_left(made.home)


def test_status(recorded: Node) -> None:
    facts = as_json("status")
    assert facts["pid"] == node_pid(recorded.home)
    assert facts["home"] == str(recorded.home)
    assert facts["store"]["sessions"] == 1
    shown = ctl("status").stdout
    assert f"pid {facts['pid']}" in shown and "ready" in shown


def test_actors(recorded: Node) -> None:
    def gone() -> list[Any]:
        """Rows of processes that do not run: one that has just ended (a session's) may still be in the table."""
        rows = {row["name"]: row for row in as_json("actors")}
        assert {"gateway", "store", "indexer", "stuck_detector"} <= set(rows)
        return [row for row in rows.values() if row["pid"] and not Path(f"/proc/{row['pid']}").exists()]

    deadline = time.monotonic() + 10
    while left := gone():
        assert time.monotonic() < deadline, left
    assert "stuck_detector" in ctl("actors").stdout


def test_sessions(recorded: Node) -> None:
    (record,) = as_json("sessions")
    assert record["sessionId"] == recorded.session and record["binaryPath"].endswith("echo")
    assert recorded.session in ctl("sessions").stdout


def test_query(recorded: Node) -> None:
    found = as_json("query", recorded.session, "--type", "stdout")
    assert [event["text"] for event in found["events"]] == ["recorded [bold]line\n"]
    assert found["totalCount"] == 1
    assert "recorded [bold]line" in ctl("query", recorded.session, "--type", "stdout").stdout
    assert as_json("query", recorded.session, "--filter", '{"eventType": "stderr"}')["totalCount"] == 0


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--type", "nonsense"), "eventType"),
        (("--limit", "501"), "limit"),
        (("--filter", "{"), "--filter"),
        (("--filter", '{"funktion": 1}'), "funktion"),
    ],
)
def test_query_names_the_bad_field(recorded: Node, arguments: tuple[str, ...], named: str) -> None:
    result = ctl("query", recorded.session, *arguments, "--json")
    assert result.exit_code == 1
    error = json.loads(result.stdout)["error"]
    assert error["code"] == "VALIDATION_ERROR" and named in error["what"]


def test_unknown_session_is_an_error_with_a_next_step(recorded: Node) -> None:
    result = ctl("query", "no-such-session")
    assert result.exit_code == 1
    assert result.stderr.startswith("SESSION_NOT_FOUND") and len(result.stderr.splitlines()) == 2


def test_sql(recorded: Node) -> None:
    found = as_json("sql", "SELECT 40 + 2 AS answer", "--session", recorded.session)
    assert found["columns"] == ["answer"] and found["rows"] == [[42]]
    assert "answer" in ctl("sql", "SELECT 40 + 2 AS answer", "--session", recorded.session).stdout
    assert ctl("sql", "DROP TABLE events", "--session", recorded.session).exit_code == 1


def test_tail_ends_with_the_session(recorded: Node) -> None:
    lines = [json.loads(line) for line in ctl("tail", recorded.session, "--type", "stdout", "--json").stdout.splitlines()]
    assert [line["text"] for line in lines] == ["recorded [bold]line\n"]


def test_trace_request_tells_the_story_over_several_actors(recorded: Node) -> None:
    lines = as_json("trace-request", recorded.request)
    assert {line["cause"] for line in lines if "cause" in line} == {recorded.request}
    assert [line["at"] for line in lines] == sorted(line["at"] for line in lines)
    assert len({line["actor"] for line in lines}) >= 2, lines
    missing = ctl("trace-request", "no-such-request")
    assert missing.exit_code == 1 and "no-such-request" in missing.stderr


def test_settings_are_shown_set_and_refused(recorded: Node) -> None:
    assert as_json("settings", "retention.days")["settings"]["retention.days"]["value"] == 7
    assert ctl("settings", "retention.days", "3").exit_code == 0
    shown = as_json("settings")["settings"]["retention.days"]
    assert (shown["value"], shown["from"]) == (3, str(recorded.home / "settings.json"))
    refused = ctl("settings", "retention.days", "many")
    assert refused.exit_code == 1 and "from 0 to 3,650" in refused.stderr
    assert ctl("settings", "no.such.key").exit_code == 1
    assert as_json("settings", "retention.days")["settings"]["retention.days"]["value"] == 3


def test_doctor_checks_machine_and_node(recorded: Node) -> None:
    result = ctl("doctor", "--json")
    facts = json.loads(result.stdout)
    findings = {finding["check"]: finding for finding in facts["findings"]}
    assert set(findings) == {"versions", "home", "settings", "built parts", "ptrace", "shared memory", "frida", "node"}
    assert all(finding["nextStep"] for finding in facts["findings"] if finding["verdict"] != "ok")
    assert findings["node"]["verdict"] == "ok" and str(node_pid(recorded.home)) in findings["node"]["detail"]
    assert result.exit_code == (0 if facts["ok"] else 1)


def test_without_a_node(tmp_path: Path) -> None:
    with environment(tmp_path, None, {}):
        for command in ("status", "actors", "sessions"):
            result = ctl(command)
            assert result.exit_code == 1
            assert result.stderr.startswith("ACTOR_UNAVAILABLE: No node runs")
        assert as_json("stop") == {"stopped": None}


@pytest.mark.parametrize("force", [False, True])
def test_stop(tmp_path: Path, force: bool) -> None:
    with environment(tmp_path, ("stuck_detector",), {}):
        pid = ensure_node()
        if force:
            os.kill(pid, signal.SIGSTOP)  # a supervisor that answers nobody
        assert as_json("stop", *(["--force"] if force else [])) == {"stopped": pid}
        assert node_pid() is None
        if force:
            (tmp_path / "run" / "bus").unlink(missing_ok=True)  # nobody was left to do it; the next node takes it over
        assert_nothing_left(tmp_path)


def test_status_counts_what_the_supervisor_counts(recorded: Node) -> None:
    async def counted() -> int:
        async with Client() as client:
            return len((await client.ask("supervisor", Status())).actors)

    assert len(as_json("actors")) == run(counted())
