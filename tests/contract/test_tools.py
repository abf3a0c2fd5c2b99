"""What clients see of the tools: strict schemas, short, never stale, and nothing advertised that does nothing."""

from __future__ import annotations

import ast
import inspect
import json
from pathlib import Path
from typing import Any

import bpe_openai
import pytest
from jsonschema import Draft202012Validator

from actors.gateway import schemas
from actors.gateway.server import listed_tools
from actors.gateway.tool import Tool
from actors.gateway.tools import ALIASES, TOOLS
from strobe.errors import Code

ROOT = Path(__file__).resolve().parents[2]
TOKENS_MAX = 600  # o200k_base tokens of a tool in tools/list, with its output schema
LATER_TOOLS = {"debug_breakpoint", "debug_continue", "debug_ui", "debug_ui_action", "debug_channel", "debug_test_scenario"}
ADVERTISED = {tool.name: tool for tool in listed_tools(legacy=True).tools}


def wire(name: str) -> str:
    return json.dumps(ADVERTISED[name].model_dump(by_alias=True, exclude_none=True, mode="json"), separators=(",", ":"))


def test_the_tools_of_today_in_their_order() -> None:
    assert [tool.name for tool in listed_tools(legacy=False).tools] == [
        "debug_launch", "debug_trace", "debug_query", "debug_memory", "debug_session", "debug_test",
    ]  # fmt: skip
    assert [tool.name for tool in listed_tools(legacy=True).tools][6:] == [
        "debug_stop", "debug_list_sessions", "debug_delete_session", "debug_test_status", "debug_read", "debug_write",
    ]  # fmt: skip
    assert not LATER_TOOLS & set(ADVERTISED)


@pytest.mark.parametrize("name", sorted(ADVERTISED))
def test_a_tool_costs_few_tokens(name: str) -> None:
    tokens = len(bpe_openai.get_encoding("o200k_base").encode(wire(name)))
    assert tokens <= TOKENS_MAX, f"{name}: {tokens} tokens of o200k_base"


@pytest.mark.parametrize("name", sorted(ADVERTISED))
def test_schemas_are_valid_and_strict(name: str) -> None:
    tool = ADVERTISED[name]
    assert tool.output_schema is not None
    for schema in (tool.input_schema, tool.output_schema):
        Draft202012Validator.check_schema(schema)
        assert schema["type"] == "object"
    assert tool.input_schema["additionalProperties"] is False
    assert list(strict_gaps(tool.input_schema)) == []


def strict_gaps(schema: Any, path: str = "") -> Any:
    """Objects with named properties that would let other ones pass."""
    if isinstance(schema, dict):
        if "properties" in schema and schema.get("additionalProperties") is not False:
            yield path
        for key, value in schema.items():
            yield from strict_gaps(value, f"{path}/{key}")


@pytest.mark.parametrize("name", sorted(ADVERTISED))
def test_annotations_and_description(name: str) -> None:
    tool = ADVERTISED[name]
    assert tool.annotations is not None
    assert tool.annotations.read_only_hint is not None
    assert tool.annotations.open_world_hint is not None
    if not tool.annotations.read_only_hint:
        assert tool.annotations.destructive_hint is not None
        assert tool.annotations.idempotent_hint is not None
    assert tool.description
    assert "\n" not in tool.description


def test_only_debug_query_is_read_only() -> None:
    assert [name for name, tool in ADVERTISED.items() if tool.annotations and tool.annotations.read_only_hint] == ["debug_query"]


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_every_advertised_argument_reaches_something(tool: Tool) -> None:
    """Each field of the arguments is read in the tool's own module (maxTokens: by the caller of all tools)."""
    module = inspect.getmodule(tool.run)
    assert module is not None
    tree = ast.parse(inspect.getsource(module))
    read = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "arguments"}
    copied = set()
    if "Query.model_fields" in inspect.getsource(module):  # debug_query hands these over by name
        from strobe.model.query import Query  # only here: the one tool that does so

        copied = set(Query.model_fields)
    assert set(tool.arguments.model_fields) - read - copied - {"max_tokens"} == set()


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_fields_of_later_are_not_advertised(tool: Tool) -> None:
    assert not set(tool.later) & set(ADVERTISED[tool.name].input_schema["properties"])


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_cuttable_fields_are_lists_of_the_result(tool: Tool) -> None:
    properties = ADVERTISED[tool.name].output_schema or {}
    for field in tool.cuttable:
        assert properties["properties"][field]["type"] == "array"


def test_aliases_hide_what_they_fix() -> None:
    for alias in ALIASES:
        assert not set(alias.fixed) & set(ADVERTISED[alias.name].input_schema["properties"])
        assert not set(alias.fixed) & set(ADVERTISED[alias.name].input_schema.get("required", []))


def test_generated_files_are_not_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STROBE_HOME", str(tmp_path))
    assert schemas.stale() == [], "run: python -m actors.gateway.schemas"


@pytest.mark.parametrize("released", sorted((ROOT / "schemas/released").glob("mcp-tools-*.json")), ids=lambda path: path.stem)
def test_clients_of_a_released_version_still_work(released: Path) -> None:
    """No tool and no argument of it is gone, none is newly required, and no reply lacks what it promised."""
    now = {tool["name"]: tool for tool in schemas.tools_json()}
    for tool in json.loads(released.read_text(encoding="utf-8")):
        assert tool["name"] in now
        for schema, promised in (("inputSchema", False), ("outputSchema", True)):
            before, after = tool[schema], now[tool["name"]][schema]
            assert set(before["properties"]) <= set(after["properties"])
            required = set(before.get("required", [])), set(after.get("required", []))
            assert required[0] <= required[1] if promised else required[1] <= required[0]


def test_card_answers_every_protocol_version() -> None:
    """The same bytes as the server's is what staleness checks; here: that nothing is missing."""
    card = json.loads((ROOT / "strobe/cli/card.json").read_text(encoding="utf-8"))
    assert card["latest"] in card["initialize"]
    assert set(card["initialize"]) | set(card["discover"]) == set(card["tools"])
    assert {"2024-11-05", "2025-11-25", "2026-07-28"} <= set(card["tools"])
    for version, result in card["initialize"].items():
        assert result["protocolVersion"] == version


def test_every_error_code_used_exists() -> None:
    used = set()
    for path in (*(ROOT / "strobe").rglob("*.py"), *(ROOT / "actors").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Code" and node.attr.isupper():
                used.add(node.attr)
    assert used
    assert used <= {str(code) for code in Code}
