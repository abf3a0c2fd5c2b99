"""All tools, in the order clients see them, and the former names that lead to them."""

from __future__ import annotations

from typing import Final

from actors.gateway.alias import Alias
from actors.gateway.tool import Tool
from actors.gateway.tools import debug_launch, debug_memory, debug_query, debug_session, debug_test, debug_trace

TOOLS: Final[tuple[Tool, ...]] = (
    debug_launch.TOOL,
    debug_trace.TOOL,
    debug_query.TOOL,
    debug_memory.TOOL,
    debug_session.TOOL,
    debug_test.TOOL,
)

ALIASES: Final[tuple[Alias, ...]] = (
    Alias("debug_stop", debug_session.TOOL, {"action": "stop"}),
    Alias("debug_list_sessions", debug_session.TOOL, {"action": "list"}),
    Alias("debug_delete_session", debug_session.TOOL, {"action": "delete"}),
    Alias("debug_test_status", debug_test.TOOL, {"action": "status"}),
    Alias("debug_read", debug_memory.TOOL, {"action": "read"}),
    Alias("debug_write", debug_memory.TOOL, {"action": "write"}),
)
