"""The MCP server of one client: the SDK's low-level Server over our tools."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.types import CallToolRequestParams, CallToolResult, ListToolsResult, PaginatedRequestParams

from actors.gateway.calls import Calls
from actors.gateway.tool import Client
from actors.gateway.tools import ALIASES, TOOLS
from strobe import __version__
from strobe.config import load_settings

INSTRUCTIONS: Final = (
    "Strobe debugs running programs without recompiling them. debug_launch a program, debug_query its output and calls, "
    "debug_trace to add or remove function traces while it runs, debug_session to see or stop it. "
    "Start with output alone; then trace the few functions in question and query them. Every error names the next step."
)


@cache  # not at import: the first tools/list may be answered while this process still starts (strobe/cli/card.json)
def listed_tools(legacy: bool) -> ListToolsResult:
    tools = [tool.advertised() for tool in TOOLS]
    return ListToolsResult(tools=[*tools, *(alias.advertised() for alias in ALIASES)] if legacy else tools)


def build_server(client: Client, calls: Calls) -> Server[Any]:
    async def list_tools(_: ServerRequestContext[Any], __: PaginatedRequestParams | None) -> ListToolsResult:
        return listed_tools(bool(load_settings().values["mcp.legacyTools"]))

    async def call_tool(context: ServerRequestContext[Any], params: CallToolRequestParams) -> CallToolResult:
        wanted = context.meta is not None and "progress_token" in context.meta
        return await calls.call(params.name, params.arguments or {}, client, context.session.report_progress if wanted else None)

    return Server("strobe", version=__version__, instructions=INSTRUCTIONS, on_list_tools=list_tools, on_call_tool=call_tool)
