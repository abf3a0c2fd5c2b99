"""JSON Schema of pydantic models, in the shortest form that says the same: what a model reads costs tokens.

No titles, no `null` beside optional fields, no least values 0 and 1, `$defs` put in place.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel

Json = dict[str, Any]


def compact_schema(model: type[BaseModel], mode: Literal["validation", "serialization"] = "validation", *, strict: bool = True) -> Json:
    """Draft 2020-12 schema of `model`. `strict`: says that other fields are refused."""
    raw = model.model_json_schema(by_alias=True, mode=mode)
    schema: Json = _tidy(raw, raw.get("$defs", {}), strict)
    schema.pop("description", None)
    return schema


def _tidy(node: Any, definitions: Json, strict: bool) -> Any:
    if isinstance(node, list):
        return [_tidy(item, definitions, strict) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        target = dict(definitions[node["$ref"].rsplit("/", 1)[-1]])
        target.pop("description", None)
        rest = {key: value for key, value in node.items() if key != "$ref"}
        return _tidy({**target, **rest}, definitions, strict)
    if "properties" in node and isinstance(node["properties"], dict):
        node = {**node, "properties": {name: _property(value) for name, value in node["properties"].items()}}
    tidy = {key: _tidy_member(key, value, definitions, strict) for key, value in node.items() if key not in ("title", "$defs")}
    if "enum" in tidy:
        tidy.pop("type", None)  # the values say it
        if tidy.get("default") == tidy["enum"][0]:
            tidy.pop("default")
    if not strict or tidy.get("additionalProperties") is True:
        tidy.pop("additionalProperties", None)
    return tidy


def _tidy_member(key: str, value: Any, definitions: Json, strict: bool) -> Any:
    if key == "properties":
        return {name: _tidy(value[name], definitions, strict) for name in sorted(value, key=_rank)}
    return _tidy(value, definitions, strict)


def _rank(name: str) -> int:
    """What matters most comes first; otherwise the order of declaration stays."""
    return {"sessionId": 0, "action": 0, "command": 0, "maxTokens": 2, "warnings": 2, "leftOut": 2}.get(name, 1)


def _property(schema: Json) -> Json:
    """An optional field is one that need not be there: `null` and an empty default are not mentioned."""
    schema = {key: value for key, value in schema.items() if _tells(key, value)}
    choices = [{key: value for key, value in choice.items() if _tells(key, value)} for choice in schema.get("anyOf", []) if choice != {"type": "null"}]
    if "anyOf" not in schema:
        return schema
    rest = {key: value for key, value in schema.items() if key != "anyOf"}
    if len(choices) == 1:
        return {**choices[0], **rest}
    if all(set(choice) == {"type"} for choice in choices):
        return {"type": [choice["type"] for choice in choices], **rest}
    return {"anyOf": choices, **rest}


def _tells(key: str, value: Any) -> bool:
    """An empty default, items of any kind and a least value of 0 or 1 say nothing."""
    return not ((key in ("default", "items") and not value) or (key == "minimum" and value in (0, 1)))
