"""Parts of the gateway that need no process: which file a command names, what is said about wrong arguments, schemas."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field

from actors.gateway.abandoned import ABANDONED_S, abandoned
from actors.gateway.command import check_arguments, find_program, is_python, project_folder, symbols_file, target_environment
from actors.gateway.schema import compact_schema
from actors.gateway.tools import ALIASES, TOOLS
from actors.gateway.validate import parse_arguments
from strobe.errors import Code, StrobeError
from strobe.model.session import SessionRecord, SessionState

BY_NAME = {tool.name: tool for tool in TOOLS}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in ("build/app", "app", "bin/tool", "build/run.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("#!/usr/bin/env python3\n" if name.endswith(".py") else "#!/bin/sh\n")
        path.chmod(0o755)
    return tmp_path


def refusal(tool: str, **arguments: Any) -> StrobeError:
    with pytest.raises(StrobeError) as raised:
        parse_arguments(BY_NAME[tool], arguments)
    return raised.value


def test_relative_commands_start_at_the_project(project: Path) -> None:
    found = find_program("build/app", None, project, {})
    assert (found.path, found.cwd, found.note) == (project / "build/app", project / "build", None)


def test_relative_commands_start_at_cwd_where_one_is_given(project: Path) -> None:
    found = find_program("./app", "build", project, {})
    assert (found.path, found.cwd) == (project / "build/app", project / "build")


def test_a_file_of_that_name_goes_before_path(project: Path) -> None:
    assert find_program("app", None, project, {"PATH": str(project / "build")}).path == project / "app"


def test_path_is_the_targets_own_and_is_told(project: Path) -> None:
    found = find_program("tool", None, project, {"PATH": str(project / "bin")})
    assert found.path == project / "bin/tool"
    assert found.cwd == project / "bin"
    assert found.note is not None
    assert "PATH" in found.note


@pytest.mark.parametrize(
    ("command", "cwd", "words"),
    [
        ("", None, "empty"),
        ("a\0b", None, "NUL"),
        ("build", None, "folder"),
        ("build/none/app", None, "does not exist"),
        ("none", None, "nor on PATH"),
        ("app", "none", "cwd"),
        ("app", "app", "is a file"),
    ],
)
def test_what_is_no_program(project: Path, command: str, cwd: str | None, words: str) -> None:
    with pytest.raises(StrobeError) as raised:
        find_program(command, cwd, project, {"PATH": ""})
    assert raised.value.code is Code.VALIDATION_ERROR
    assert words in raised.value.what


def test_the_first_missing_part_is_named(project: Path) -> None:
    with pytest.raises(StrobeError) as raised:
        find_program("build/deep/down/app", None, project, {})
    assert f"{project}/build exists, but has no 'deep'" in raised.value.next_step


def test_project_and_symbols_must_exist(project: Path) -> None:
    assert project_folder(str(project)) == project
    for wrong in ("relative", str(project / "none"), str(project / "app")):
        with pytest.raises(StrobeError):
            project_folder(wrong)
    assert symbols_file(None, project) is None
    assert symbols_file("build/app", project) == str(project / "build/app")
    with pytest.raises(StrobeError) as raised:
        symbols_file("none.debug", project)
    assert raised.value.value == "none.debug"


def test_environment_is_the_clients_with_changes_and_nothing_of_ours(project: Path) -> None:
    client = {"HOME": "/h", "LANG": "C", "STROBE_BUS": "x", "STROBE_IDENTITY": "y", "STROBE_GENERATION": "1"}
    assert target_environment(client, {"LANG": "fr", "NEW": ""}, project / "app") == {"HOME": "/h", "LANG": "fr", "NEW": ""}
    assert target_environment({}, None, project / "build/run.py") == {"PYTHONUNBUFFERED": "1"}
    assert target_environment({}, {"PYTHONUNBUFFERED": "0"}, project / "build/run.py") == {"PYTHONUNBUFFERED": "0"}
    for name, value in (("A=B", ""), ("", "x"), ("A", "x\0")):
        with pytest.raises(StrobeError):
            target_environment({}, {name: value}, project / "app")


def test_python_is_known_by_name_or_first_line(project: Path) -> None:
    assert is_python(Path("/usr/bin/python3.12"))
    assert is_python(project / "build/run.py")
    assert not is_python(project / "app")


def test_arguments_hold_no_nul() -> None:
    check_arguments(["a", ""])
    with pytest.raises(StrobeError) as raised:
        check_arguments(["a", "b\0"])
    assert raised.value.value == "args[1]"


@pytest.mark.parametrize(
    ("tool", "arguments", "value", "next_step"),
    [
        ("debug_query", {"sessionId": "s", "functon": 1}, "functon", "`function`"),
        ("debug_query", {"session_id": "s"}, "session_id", "`sessionId`"),
        ("debug_query", {"sessionId": "s", "function": {"equal": "x"}}, "function.equal", "`equals`"),
        ("debug_query", {"sessionId": "s", "minDuration": 4}, "minDuration", "`minDurationNs`"),
        ("debug_query", {"sessionId": "s", "limit": "5"}, "limit", "`limit`"),
        ("debug_query", {"sessionId": "s", "limit": True}, "limit", "`limit`"),
        ("debug_query", {"sessionId": "s", "timeFrom": "-5x"}, "timeFrom", "`timeFrom`"),
        ("debug_query", {}, "sessionId", "`sessionId`"),
        ("debug_trace", {"add": ["a", 3]}, "add[1]", "`add[1]`"),
        ("debug_trace", {"serializationDepth": 11}, "serializationDepth", "`serializationDepth`"),
        ("debug_launch", {"command": "c", "projectRoot": "/", "env": {"A": 1}}, "env.A", "`env.A`"),
        ("debug_session", {"action": "kill"}, "action", "`action`"),
        ("debug_session", {"action": "list", "maxTokens": 3}, "maxTokens", "`maxTokens`"),
    ],
)
def test_wrong_arguments_are_named(tool: str, arguments: dict[str, Any], value: str, next_step: str) -> None:
    error = refusal(tool, **arguments)
    assert error.code is Code.VALIDATION_ERROR
    assert error.value == value
    assert f"`{value}`" in error.what
    assert next_step in error.next_step


def test_secrets_are_not_repeated() -> None:
    error = refusal("debug_launch", command="c", projectRoot="/", env={"TOKEN": 12345678}, args=[99887766])
    assert "12345678" not in error.what
    assert "99887766" not in error.what


def test_stdin_may_be_text_or_open() -> None:
    for given in ("text", {"open": True}):
        parsed = parse_arguments(BY_NAME["debug_launch"], {"command": "c", "projectRoot": "/", "stdin": given})
        assert parsed.stdin is not None  # type: ignore[attr-defined]  # LaunchArguments
    for wrong in (5, {"open": False}, {"close": True}, ["text"]):
        assert "stdin" in str(refusal("debug_launch", command="c", projectRoot="/", stdin=wrong).value)


def test_what_comes_later_says_so() -> None:
    assert refusal("debug_launch", channels=[], projectRoot="/").what == "`channels` is not supported yet."


def test_a_budget_is_within_bounds() -> None:
    for wrong in ({"rate": 2}, {"eventsPerSecond": 0}, {"overheadPercent": 0}, {"callsPerSecond": -1}, {"share": 1}):
        assert "budget" in str(refusal("debug_trace", budget=wrong).value)


def test_an_alias_fixes_its_arguments() -> None:
    stop = next(alias for alias in ALIASES if alias.name == "debug_stop")
    assert stop.arguments({"sessionId": "s"}) == {"sessionId": "s", "action": "stop"}
    with pytest.raises(StrobeError):
        stop.arguments({"action": "list"})


def record(name: str, state: SessionState, *, retained: bool = False, client: str = "gone") -> SessionRecord:
    return SessionRecord(
        session_id=name, client_id=client, binary_path="/b", command=["/b"], cwd="/", project_root="/", pid=1, state=state, started_at=1,
        started_monotonic_ns=1, retained=retained,
    )  # fmt: skip


def test_abandoned_sessions_are_those_that_ended_and_nobody_asks_about() -> None:
    records = [
        record("exited", SessionState.EXITED),
        record("crashed", SessionState.CRASHED),
        record("asked about", SessionState.EXITED),
        record("running", SessionState.RUNNING),
        record("retained", SessionState.EXITED, retained=True),
        record("connected", SessionState.EXITED, client="here"),
    ]
    late = 100.0 + ABANDONED_S + 1
    assert [each.session_id for each in abandoned(records, {"here"}, {"asked about": 200.0}, 100.0, late)] == ["exited", "crashed"]
    assert abandoned(records, {"here"}, {}, 100.0, late - 2) == []


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid")
    equals: str | None = None


class Outer(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str
    kind: str = Field(default="x", pattern="^x")
    inner: Inner | None = None
    time: int | str | None = None
    names: list[str] = []


def test_schema_says_the_same_in_fewer_words() -> None:
    assert compact_schema(Outer) == {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "kind": {"default": "x", "pattern": "^x", "type": "string"},
            "inner": {"type": "object", "properties": {"equals": {"type": "string"}}, "additionalProperties": False},
            "time": {"type": ["integer", "string"]},
            "names": {"items": {"type": "string"}, "type": "array"},
        },
        "required": ["name"],
        "additionalProperties": False,
    }
