"""What a tool is, and what it is given when it is called."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from mcp.types import Tool as McpTool
from mcp.types import ToolAnnotations
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from actors.gateway.schema import compact_schema
from strobe.protocol.base import Ask
from strobe.render.budget import DEFAULT_TOKENS, SHORTEST_TOKENS

AnyReply = TypeVar("AnyReply", bound=BaseModel)


class Arguments(BaseModel):
    """A tool's input. Unknown fields and other types than those declared are refused."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True, strict=True)
    max_tokens: int = Field(default=DEFAULT_TOKENS, ge=SHORTEST_TOKENS)


class Result(BaseModel):
    """A tool's structured output. Fields that are None are left out of it."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True)
    warnings: list[str] = []
    left_out: dict[str, int] = {}

    def to_wire(self) -> dict[str, Any]:
        wire = self.model_dump(by_alias=True, mode="json", exclude_none=True)
        for name, info in type(self).model_fields.items():
            if name in ("warnings", "left_out") and not info.is_required() and not wire[str(info.alias)]:
                del wire[str(info.alias)]
        return wire


@dataclass(frozen=True)
class Client:
    """Who calls: one `strobe mcp`, with the folder and environment its user started it in."""

    id: str
    cwd: str
    env: Mapping[str, str]


class Asker(Protocol):
    """Actor.ask: one ask to one actor."""

    async def __call__(self, to: str, message: Ask, /, *, deadline_s: float, cause: str) -> Any: ...


class Background(Protocol):
    """Keeps a piece of work going although the call it belongs to is cancelled."""

    def __call__(self, work: Coroutine[Any, Any, None], /) -> asyncio.Task[None]: ...


class Progress(Protocol):
    """Tells the client how a call gets on: a number that grows with each one, and words."""

    async def __call__(self, progress: float, total: float | None = None, message: str | None = None) -> None: ...


@dataclass
class Call:
    """One call of a tool. `cause` goes along with every ask it makes."""

    client: Client
    cause: str
    asker: Asker
    settings: Mapping[str, Any]
    background: Background
    warnings: list[str] = field(default_factory=list)
    progress: Progress | None = None  # the client wants none

    async def ask(self, name: str, message: Ask, reply: type[AnyReply], *, deadline_s: float = 12.0) -> AnyReply:
        answer = await self.asker(name, message, deadline_s=deadline_s, cause=self.cause)
        if not isinstance(answer, reply):
            raise TypeError(f"{name} answered {type(answer).__name__} to {message.TYPE}, not {reply.__name__}")
        return answer


@dataclass(frozen=True)
class Tool:
    """One MCP tool. `later`: fields known from the product's description that are not supported yet, and what to do meanwhile."""

    name: str
    description: str
    arguments: type[Arguments]
    result: type[Result]
    annotations: ToolAnnotations
    run: Callable[[Any, Call], Awaitable[Result]]
    text: Callable[[dict[str, Any]], str]
    cuttable: tuple[str, ...] = ()  # list fields of the result that maxTokens may shorten, least needed first
    later: Mapping[str, str] = field(default_factory=dict)

    def advertised(self) -> McpTool:
        return McpTool(
            name=self.name,
            description=self.description,
            input_schema=compact_schema(self.arguments),
            output_schema=compact_schema(self.result, "serialization", strict=False),
            annotations=self.annotations,
        )
