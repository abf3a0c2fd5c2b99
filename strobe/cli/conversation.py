"""What a shim must remember of its client's talk with the gateway, so that a gateway may die. Pure: no sockets, the clock is the caller's.

Messages go in by `from_client` and `from_gateway`; what is to be written collects in `to_client` and `to_gateway`.
"""

from __future__ import annotations

import json
from collections import deque

TYPE_CHECKING = False  # as in typing, which takes 5 ms to import
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Final

    Json = dict[str, Any]

CARD_AFTER_S: Final = 0.03  # tools/list waits so long for the gateway before the card answers
WAIT_S: Final = 20.0  # a request waits so long for a gateway
WAITING_MAX: Final = 256
WAITING_BYTES_MAX: Final = 64 << 20
VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
UNAVAILABLE: Final = -32000


class Waiting:
    __slots__ = ("line", "message", "since")

    def __init__(self, line: bytes, message: Json, since: float) -> None:
        self.line = line
        self.message = message
        self.since = since


class Conversation:
    """`card` gives strobe/cli/card.json; it is called when that is first needed."""

    def __init__(self, card: Callable[[], Json]) -> None:
        self.to_client: list[bytes] = []
        self.to_gateway: list[bytes] = []
        self.connected = False
        self.in_flight: dict[str, str] = {}  # id as JSON: method
        self._card = card
        self._drop: set[str] = set()  # ids whose answer by the gateway is a duplicate
        self._waiting: deque[Waiting] = deque()
        self._waiting_bytes = 0
        self._initialize: bytes | None = None
        self._initialized: bytes | None = None
        self._version = ""
        self._known = False  # this connection's gateway has seen `initialize`

    # Stimuli

    def from_client(self, line: bytes, now: float) -> None:
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):  # or nested a thousand deep
            self._error(None, PARSE_ERROR, "Not JSON.")
            return
        if not isinstance(message, dict):
            self._error(None, INVALID_REQUEST, "Not a JSON-RPC 2.0 message: one object a line.")
            return
        if "method" in message and not _is_id(message.get("id", "")):
            self._error(None, INVALID_REQUEST, "A request's id is a text or a whole number.")
            return
        if message.get("method") == "initialize" and "id" in message:
            self._take_initialize(line, message)
        elif message.get("method") == "notifications/initialized":
            self._initialized = line
            if self.connected and self._known:
                self.to_gateway.append(line)
        elif message.get("method") == "notifications/cancelled":
            self._cancel(line, message)
        elif self.connected:
            self._forward(line, message)
        else:
            self._wait(line, message, now)

    def oversized(self, request_id: bytes, length: int, limit: int) -> None:
        text = f"A message of {length:,} bytes; the limit is {limit:,}. Send less."
        self._error(json.loads(request_id), INVALID_REQUEST, text)

    def from_gateway(self, line: bytes) -> None:
        message = json.loads(line)
        if isinstance(message, dict) and "method" not in message and "id" in message:
            key = json.dumps(message["id"])
            if key in self._drop:
                self._drop.discard(key)
                return
            self.in_flight.pop(key, None)
        self.to_client.append(line)

    def gateway_up(self) -> None:
        """A gateway that knows nothing of this client: it is told the client's own opening, then what waits."""
        self.connected = True
        if self._initialize is not None:
            self._replay()
        while self._waiting:
            waiting = self._waiting.popleft()
            self._forward(waiting.line, waiting.message)
        self._waiting_bytes = 0

    def gateway_lost(self, why: str) -> None:
        """Requests in flight are answered: whether they took effect is unknown, and the client is told so."""
        self.connected = self._known = False
        self._drop.clear()
        self.to_gateway.clear()
        lost, self.in_flight = self.in_flight, {}
        for key, method in lost.items():
            text = f"Strobe's gateway {why} during {method}; it is being restarted. Look whether it took effect (debug_session list), then try again."
            self._error(json.loads(key), UNAVAILABLE, text)

    @property
    def owes_answers(self) -> bool:
        """A request of the client's has no answer yet."""
        return bool(self.in_flight) or any(_is_request(waiting.message) for waiting in self._waiting)

    def give_up(self, when: str) -> None:
        """Answers what has none, for good."""
        owed = [(json.loads(key), method) for key, method in self.in_flight.items()]
        owed += [(waiting.message["id"], waiting.message["method"]) for waiting in self._waiting if _is_request(waiting.message)]
        for request_id, method in owed:
            self._error(request_id, UNAVAILABLE, f"{method} has no answer {when}. Look whether it took effect (debug_session list).")
        self.in_flight.clear()
        self._waiting.clear()
        self._waiting_bytes = 0

    def tick(self, now: float, obstacle: str | None) -> None:
        """Answers what has waited long enough: from the card where it can, by an error after 20 s or when the node cannot start."""
        if self.connected or not self._waiting:
            return
        kept: deque[Waiting] = deque()
        for waiting in self._waiting:
            if now - waiting.since >= CARD_AFTER_S and self._answer_from_card(waiting.message):
                continue
            if _is_request(waiting.message) and (obstacle or now - waiting.since > WAIT_S):
                why = obstacle or f"it is not up after {WAIT_S:g} s"
                self._error(waiting.message["id"], UNAVAILABLE, f"Strobe's node cannot be reached: {why}. Try again, or see `strobe-ctl doctor`.")
                continue
            kept.append(waiting)
        self._waiting = kept
        self._waiting_bytes = sum(len(waiting.line) for waiting in kept)

    def next_tick_s(self, now: float) -> float | None:
        """Seconds until `tick` may have something to do; None: nothing waits."""
        if self.connected or not self._waiting:
            return None
        return max(0.0, min(CARD_AFTER_S - (now - waiting.since) if now - waiting.since < CARD_AFTER_S else 1.0 for waiting in self._waiting))

    # Effects

    def _take_initialize(self, line: bytes, message: Json) -> None:
        """Answered from the card at once; the gateway's own answer is then a duplicate."""
        asked = (message.get("params") or {}).get("protocolVersion") if isinstance(message.get("params"), dict) else None
        if not isinstance(asked, str):
            self._error(message["id"], -32602, "Invalid request parameters: protocolVersion is missing.")
            return
        card = self._card()
        self._version = asked if asked in card["initialize"] else card["latest"]
        self._initialize, self._initialized = line, None
        self._result(message["id"], card["initialize"][self._version])
        if self.connected:
            self._replay()

    def _replay(self) -> None:
        assert self._initialize is not None
        self._known = True
        self._drop.add(json.dumps(json.loads(self._initialize)["id"]))
        self.to_gateway.append(self._initialize)
        if self._initialized is not None:
            self.to_gateway.append(self._initialized)

    def _forward(self, line: bytes, message: Json) -> None:
        if _is_request(message):
            self.in_flight[json.dumps(message["id"])] = str(message["method"])
        self.to_gateway.append(line)

    def _cancel(self, line: bytes, message: Json) -> None:
        """Of a request that is cancelled no answer is waited for, though one may come."""
        params = message.get("params")
        key = json.dumps(params.get("requestId") if isinstance(params, dict) else None)
        self.in_flight.pop(key, None)
        self._waiting = deque(waiting for waiting in self._waiting if not (_is_request(waiting.message) and json.dumps(waiting.message["id"]) == key))
        self._waiting_bytes = sum(len(waiting.line) for waiting in self._waiting)
        if self.connected:
            self.to_gateway.append(line)

    def _wait(self, line: bytes, message: Json, now: float) -> None:
        if len(self._waiting) >= WAITING_MAX or self._waiting_bytes + len(line) > WAITING_BYTES_MAX:
            if _is_request(message):
                self._error(message["id"], UNAVAILABLE, "Strobe's node is still starting and too many messages wait for it. Try again.")
            return
        self._waiting.append(Waiting(line, message, now))
        self._waiting_bytes += len(line)

    def _answer_from_card(self, message: Json) -> bool:
        if "id" not in message:
            return False
        method, params = message.get("method"), message.get("params")
        meta = params.get("_meta") if isinstance(params, dict) else None
        version = meta.get(VERSION_KEY, self._version) if isinstance(meta, dict) else self._version
        if method == "ping" and self._version:
            self._result(message["id"], {})
        elif method == "server/discover" and version in self._card()["discover"]:
            self._result(message["id"], self._card()["discover"][version])
        elif method == "tools/list" and version in self._card()["tools"]:
            self._result(message["id"], self._card()["tools"][version])
        else:
            return False
        return True

    def _result(self, request_id: Any, result: Json) -> None:
        self._say({"jsonrpc": "2.0", "id": request_id, "result": result})

    def _error(self, request_id: Any, code: int, text: str) -> None:
        self._say({"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": text}})

    def _say(self, message: Json) -> None:
        self.to_client.append(json.dumps(message, separators=(",", ":")).encode())


def _is_id(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def _is_request(message: Json) -> bool:
    return "id" in message and "method" in message
