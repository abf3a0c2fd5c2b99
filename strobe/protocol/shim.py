"""Frames between `strobe mcp` (DEALER) and the gateway (ROUTER at `paths.mcp_endpoint`). Imports nothing: the shim starts on it.

Each message is [kind, body]. Bodies are JSON; an `mcp` body is one JSON-RPC message, as it stands on the client's stdio without its newline.

From the shim
  hello  {"version", "client": uuid of this shim's life, "pid", "cwd", "env": {name: value}}; first, and again after `again`
  mcp    a message of the client
  ping   {}; each second. No pong for PONG_WAIT_S: the gateway is gone or stuck
  bye    {}; the client closed its stdin
To the shim
  hello  {"version", "generation"}; the answer to hello. Another generation than before: this is a new gateway, which knows nothing of
         the requests in flight. The shim answers those itself (-32000, try again) and replays the client's own initialize and initialized
         frames, dropping the second answer to initialize
  mcp    a message for the client
  pong   {"generation"}
  again  {}; the gateway does not know this peer (it was restarted): say hello, then replay
"""

from __future__ import annotations

TYPE_CHECKING = False  # as in typing, which takes 5 ms to import
if TYPE_CHECKING:
    from typing import Final

HELLO: Final = b"hello"
MCP: Final = b"mcp"
PING: Final = b"ping"
PONG: Final = b"pong"
BYE: Final = b"bye"
AGAIN: Final = b"again"

PING_EVERY_S: Final = 1.0
PONG_WAIT_S: Final = 10.0
FRAME_BYTES_MAX: Final = 32 << 20  # one JSON-RPC message; larger ones are refused
