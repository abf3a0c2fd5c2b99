"""What a client hears first, per protocol version, as the real server says it: `strobe/cli/card.json`.

    {"latest": "2025-11-25", "initialize": {version: result}, "discover": {version: result}, "tools": {version: result}}

`strobe mcp` answers from it while the node is still starting. `latest` is what an unknown version in `initialize` is answered with.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final

import structlog
from mcp.types import CLIENT_CAPABILITIES_META_KEY, CLIENT_INFO_META_KEY, PROTOCOL_VERSION_META_KEY
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_HANDSHAKE_VERSION, MODERN_PROTOCOL_VERSIONS

from actors.gateway.calls import Calls
from actors.gateway.peer import Peer
from actors.gateway.tool import Client
from strobe.protocol.base import Ask

Json = dict[str, Any]
_INFO: Final = {"name": "card", "version": "0"}
_ANSWER_S: Final = 10.0


def build_card() -> Json:
    return asyncio.run(_card())


async def _card() -> Json:
    card: Json = {"latest": LATEST_HANDSHAKE_VERSION, "initialize": {}, "discover": {}, "tools": {}}
    for version in HANDSHAKE_PROTOCOL_VERSIONS:
        start = {"protocolVersion": version, "capabilities": {}, "clientInfo": _INFO}
        card["initialize"][version], card["tools"][version] = await _two_answers("initialize", start, {})
    for version in MODERN_PROTOCOL_VERSIONS:
        envelope = {"_meta": {PROTOCOL_VERSION_META_KEY: version, CLIENT_INFO_META_KEY: _INFO, CLIENT_CAPABILITIES_META_KEY: {}}}
        card["discover"][version], card["tools"][version] = await _two_answers("server/discover", envelope, envelope)
    return card


async def _two_answers(first: str, first_params: Json, list_params: Json) -> tuple[Json, Json]:
    """Results of the opening request and of tools/list, in one connection to a server of our own."""
    answers: dict[int, Json] = {}
    complete = asyncio.Event()

    async def send(line: bytes) -> bool:
        message = json.loads(line)
        answers[message["id"]] = message["result"]
        if len(answers) == 2:
            complete.set()
        return True

    log = structlog.get_logger()
    peer = Peer(Client("card", "/", {}), None, Calls(_no_actors, log), send, log)
    serving = asyncio.create_task(peer.run())
    await peer.take(_request(1, first, first_params))
    if first == "initialize":
        await peer.take(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}).encode())
    await peer.take(_request(2, "tools/list", list_params))
    async with asyncio.timeout(_ANSWER_S):
        await complete.wait()
    peer.leave()
    await serving
    return answers[1], answers[2]


def _request(number: int, method: str, params: Json) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode()


async def _no_actors(to: str, message: Ask, /, *, deadline_s: float, cause: str) -> Any:
    raise RuntimeError(f"listing tools asked {to} for {message.TYPE} (deadline {deadline_s} s, cause {cause})")
