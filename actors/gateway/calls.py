"""One call of a tool, from arguments to MCP result. Nothing but a CallToolResult leaves here: no traceback, no silent default."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import Any, Final

from mcp import MCPError
from mcp.types import INVALID_PARAMS, CallToolResult, TextContent

from actors.gateway.alias import Alias
from actors.gateway.tool import Arguments, Asker, Call, Client, Progress, Tool
from actors.gateway.tools import ALIASES, TOOLS
from actors.gateway.validate import parse_arguments
from strobe.config import load_settings
from strobe.errors import Code, StrobeError
from strobe.redaction import REDACTED, Redactor
from strobe.render.budget import fit_lists
from strobe.render.errors import error_text
from strobe.render.values import count
from strobe.runtime.log import Logger

CALL_S: Final = 14.5  # SPEC §4: no call blocks past 15 s
CALLS_PER_CLIENT_MAX: Final = 32
REQUEST_ID_META: Final = "strobe/requestId"

_BY_NAME: Final[dict[str, Tool | Alias]] = {**{tool.name: tool for tool in TOOLS}, **{alias.name: alias for alias in ALIASES}}


class Calls:
    """The calls in hand. `asker` sends asks to the other actors."""

    def __init__(self, asker: Asker, log: Logger) -> None:
        self._asker = asker
        self.log = log
        self._running: dict[str, int] = {}
        self.called: dict[str, float] = {}  # session id: monotonic time of the last call about it
        self._background: set[asyncio.Task[Any]] = set()

    @property
    def in_flight(self) -> int:
        return sum(self._running.values())

    async def call(self, name: str, given: Mapping[str, Any], client: Client, progress: Progress | None = None) -> CallToolResult:
        """`progress` where the client asked to be told how the call gets on."""
        item = _BY_NAME.get(name)
        if item is None:
            raise MCPError(INVALID_PARAMS, f"There is no tool {name!r}. There are: {', '.join(tool.name for tool in TOOLS)}.")
        cause = uuid.uuid4().hex[:12]
        started = time.monotonic()
        self._running[client.id] = self._running.get(client.id, 0) + 1
        outcome = "cancelled"
        try:
            result = await self._guarded(item, given, client, cause, progress)
            outcome = result.structured_content["code"] if result.is_error else "ok"
            return result
        finally:
            self._leave(client)
            self.log.info("call", cause=cause, tool=name, client=client.id, ms=round((time.monotonic() - started) * 1000, 1), outcome=outcome)

    def _leave(self, client: Client) -> None:
        self._running[client.id] -= 1
        if not self._running[client.id]:
            del self._running[client.id]

    async def _guarded(self, item: Tool | Alias, given: Mapping[str, Any], client: Client, cause: str, progress: Progress | None) -> CallToolResult:
        limit = asyncio.timeout(CALL_S)
        try:
            if self._running[client.id] > CALLS_PER_CLIENT_MAX:
                what = f"{CALLS_PER_CLIENT_MAX} calls of yours are being answered."
                raise StrobeError(Code.LIMIT_EXCEEDED, what, "Wait for one of them.", value=CALLS_PER_CLIENT_MAX)
            async with limit:
                return await self._run(item, given, client, cause, progress)
        except StrobeError as error:
            return _error_result(error, cause)
        except TimeoutError:
            if not limit.expired():
                self.log.exception("call failed", cause=cause, tool=item.name)
                return _error_result(_internal(item.name, cause), cause)
            what = f"{item.name} was not done within {CALL_S:g} s."
            return _error_result(StrobeError(Code.TIMEOUT, what, "Call it again; debug_session status tells how the session is.", value=item.name), cause)
        except Exception:
            self.log.exception("call failed", cause=cause, tool=item.name)
            return _error_result(_internal(item.name, cause), cause)

    async def _run(self, item: Tool | Alias, given: Mapping[str, Any], client: Client, cause: str, progress: Progress | None) -> CallToolResult:
        tool = item.tool if isinstance(item, Alias) else item
        arguments = parse_arguments(tool, item.arguments(given) if isinstance(item, Alias) else given)
        if session_id := getattr(arguments, "session_id", None):
            self.called[session_id] = time.monotonic()
        settings = load_settings(_project_root(arguments))
        call = Call(client, cause, self._asker, settings.values, self._keep, list(settings.warnings), _redacting(progress, settings.values))
        result = await tool.run(arguments, call)
        wire = _redacted(result.model_copy(update={"warnings": [*call.warnings, *result.warnings]}).to_wire(), settings.values)
        structured, text = fit_lists(wire, tool.cuttable, tool.text, arguments.max_tokens)
        return CallToolResult(content=[TextContent(text=text)], structured_content=structured, _meta={REQUEST_ID_META: cause})

    def _keep(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Work that goes on although its call was cancelled."""
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(self._finished)
        return task

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._background.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.log.error("work after a call failed", exc_info=error)


def _project_root(arguments: Arguments) -> str | None:
    root = getattr(arguments, "project_root", None)
    return root if isinstance(root, str) and Path(root).is_absolute() and "\0" not in root else None


def _redacted(wire: dict[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """What leaves for the client: without secrets, unless the user wants them; the reply says so."""
    if not settings["redaction.enabled"]:
        return wire
    redactor = Redactor(settings["redaction.patterns"])
    shown = redactor.reply(wire)
    notes = [*wire.get("warnings", []), *redactor.warnings]
    if redactor.found:
        notes.append(f"{count(redactor.found, 'value')} that may be secret: shown as {REDACTED} (setting redaction.enabled).")
    return {**shown, "warnings": notes} if notes else shown


def _redacting(send: Progress | None, settings: Mapping[str, Any]) -> Progress | None:
    """What is told meanwhile is redacted as the reply is."""
    if send is None:
        return None

    async def told(progress: float, total: float | None = None, message: str | None = None) -> None:
        await send(progress, total, _redacted({"message": message}, settings)["message"])

    return told


def _internal(tool: str, cause: str) -> StrobeError:
    return StrobeError(Code.ACTOR_UNAVAILABLE, f"{tool} failed inside Strobe.", f"`strobe-ctl trace-request {cause}` shows what happened.", value=cause)


def _error_result(error: StrobeError, cause: str) -> CallToolResult:
    wire = error.to_wire()
    return CallToolResult(content=[TextContent(text=error_text(wire))], structured_content=wire, is_error=True, _meta={REQUEST_ID_META: cause})
