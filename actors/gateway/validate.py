"""Arguments of a call: the declared model, or a VALIDATION_ERROR that names each field at fault."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any, Final, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from actors.gateway.tool import Arguments, Tool
from strobe.errors import Code, StrobeError

_SHOWN_MAX: Final = 5
_VALUE_CHARACTERS_MAX: Final = 120


def parse_arguments(tool: Tool, given: Mapping[str, Any]) -> Arguments:
    for field, advice in tool.later.items():
        if field in given:
            raise StrobeError(Code.VALIDATION_ERROR, f"`{field}` is not supported yet.", advice, value=field)
    try:
        return tool.arguments.model_validate(dict(given), by_alias=True, by_name=False)
    except ValidationError as error:
        raise _refusal(tool, error.errors(include_url=False, include_context=False)) from None


def _refusal(tool: Tool, problems: Sequence[ErrorDetails]) -> StrobeError:
    seen: dict[str, str] = {}
    for problem in sorted(problems, key=lambda problem: problem["type"] != "extra_forbidden"):
        name = field_name(tool.arguments, problem["loc"])
        seen.setdefault(name, _sentence(tool, name, problem))
    sentences = list(seen.values())[:_SHOWN_MAX]
    unknown = [problem for problem in problems if problem["type"] == "extra_forbidden"]
    next_step = _nearest(tool.arguments, unknown[0]["loc"]) if unknown else f"Correct `{next(iter(seen))}` and call {tool.name} again."
    return StrobeError(Code.VALIDATION_ERROR, " ".join(sentences), next_step, value=next(iter(seen)))


def _sentence(tool: Tool, name: str, problem: ErrorDetails) -> str:
    if problem["type"] == "extra_forbidden":
        return f"`{name}` is not a field of {tool.name}."
    if problem["type"] == "missing":
        return f"`{name}` is missing; {tool.name} needs it."
    message = problem["msg"].removeprefix("Value error, ").rstrip(".")
    shown = repr(problem["input"])
    value = f" (got {shown})" if len(shown) <= _VALUE_CHARACTERS_MAX and not _holds_secrets(name) else ""
    return f"`{name}`: {message[0].lower() + message[1:]}{value}."


def _holds_secrets(name: str) -> bool:
    return name.replace("[", ".").split(".", 1)[0] in ("env", "args", "stdin")


def field_name(model: type[BaseModel], location: Sequence[int | str]) -> str:
    """`function.equals`, `add[2]`: the path as the caller wrote it, without the names pydantic gives to a union's members."""
    parts: list[str] = []
    current: type[BaseModel] | None = model
    inside_union = False
    for step in location:
        if isinstance(step, int):
            parts[-1] += f"[{step}]"
            continue
        if inside_union and current is None:
            continue
        known = _members(current)
        if parts and current is not None and step not in known and step == current.__name__:
            continue
        if parts and step in _UNION_TAGS:
            continue
        parts.append(str(step))
        current = _model_of(known.get(str(step)))
    return ".".join(parts)


_UNION_TAGS: Final = frozenset({"str", "int", "bool", "float", "none"})


def _members(model: type[BaseModel] | None) -> dict[str, Any]:
    """Wire name → annotation, required fields first."""
    fields = sorted(model.model_fields.items(), key=lambda item: not item[1].is_required()) if model else []
    return {info.alias or name: info.annotation for name, info in fields}


def _model_of(annotation: Any) -> type[BaseModel] | None:
    """The model in `X`, `X | None` or `list[X]`."""
    for candidate in (annotation, *get_args(annotation)):
        if isinstance(candidate, type) and issubclass(candidate, BaseModel):
            return candidate
    return None


def _nearest(model: type[BaseModel], location: Sequence[int | str]) -> str:
    """What the unknown field may have been meant to be."""
    current: type[BaseModel] | None = model
    for step in location[:-1]:
        inner = _model_of(_members(current).get(str(step)))
        current = inner if inner is not None else current
    names = list(_members(current))
    wrong = str(location[-1])
    near = difflib.get_close_matches(wrong.lower(), [name.lower() for name in names], n=1, cutoff=0.5)
    camel = [name for name in names if near and name.lower() == near[0]] or [name for name in names if name.lower() == wrong.replace("_", "").lower()]
    listed = f"Fields: {', '.join(names)}."
    return f"Did you mean `{camel[0]}`? {listed}" if camel else listed
