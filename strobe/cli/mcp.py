"""`strobe mcp`: stdin and stdout on one side, the resident gateway on the other (frames: strobe/protocol/shim.py).

Its client waits for it, so it imports the standard library and zmq alone, and zmq only after the first request was answered:
`initialize` comes from card.json (generated from the real server, a test holds it equal: actors/gateway/card.py). It starts the node
where none runs, and outlives gateways and nodes: see conversation.py.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time

from strobe import __version__
from strobe.cli.conversation import Conversation
from strobe.cli.lines import Lines, Oversized
from strobe.protocol.shim import AGAIN, BYE, FRAME_BYTES_MAX, HELLO, MCP, PING, PING_EVERY_S, PONG_WAIT_S

TYPE_CHECKING = False  # as in typing, which takes 5 ms to import
if TYPE_CHECKING:
    from typing import Any, Final

    from strobe.cli.gateway_link import GatewayLink

ANSWERS_AT_END_S: Final = 15.0  # after EOF, for requests still in flight
POLL_S: Final = 0.25


class Terminated(Exception):
    """SIGTERM came."""


def run_shim() -> None:
    """Until stdin ends and what was asked is answered, or nobody reads the answers, or SIGTERM; never returns."""
    signal.signal(signal.SIGTERM, _terminate)
    shim = Shim()
    try:  # noqa: SIM105 - contextlib takes 3 ms to import
        shim.run()
    except (KeyboardInterrupt, BrokenPipeError, Terminated):
        pass
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    shim.leave()
    os._exit(0)  # nothing to tear down: sockets are closed, the rest is the kernel's


def _terminate(*_: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    raise Terminated


def load_card() -> dict[str, Any]:
    with open(os.path.join(os.path.dirname(__file__), "card.json"), "rb") as file:  # noqa: PTH118, PTH120, PTH123 (pathlib takes 5 ms to import)
        card: dict[str, Any] = json.loads(file.read())
    return card


class Shim:
    def __init__(self) -> None:
        self._card: dict[str, Any] = {}
        self._talk = Conversation(self._load_card)
        self._stdin = Lines(0, FRAME_BYTES_MAX)
        self._client = os.urandom(16).hex()
        self._pinged_at = 0.0
        self._heard_at = 0.0
        self._told_version = False

    def run(self) -> None:
        early = select.poll()
        early.register(0, select.POLLIN)
        if early.poll(0):
            self._from_client()

        from strobe import paths  # imports pathlib and hashlib, 10 ms: the first request is answered before
        from strobe.cli.gateway_link import GatewayLink  # imports zmq, 40 ms: as above
        from strobe.cli.node_watch import NodeWatch  # imports paths: as above

        self._watch = NodeWatch()
        self._link: GatewayLink = GatewayLink(paths.mcp_endpoint())
        self._hello()
        while not (self._stdin.ended or self._link.reader_gone()):
            self._turn(read_stdin=True)
        self._finish()

    def _turn(self, *, read_stdin: bool) -> None:
        now = time.monotonic()
        until_tick = self._talk.next_tick_s(now)
        timeout_s = POLL_S if until_tick is None else min(POLL_S, until_tick)
        stdin_ready, messages, lost = self._link.wait(timeout_s, read_stdin=read_stdin)
        for kind, body in messages:
            self._from_gateway(kind, body)
        if lost:
            self._lost("ended")
        if stdin_ready:
            self._from_client()
        self._look_after(time.monotonic())
        self._flush()

    def _from_client(self) -> None:
        for line in self._stdin.read():
            if isinstance(line, Oversized):
                self._talk.oversized(line.request_id, line.length, FRAME_BYTES_MAX)
            else:
                self._talk.from_client(line, time.monotonic())
        self._write()

    def _from_gateway(self, kind: bytes, body: bytes) -> None:
        self._heard_at = time.monotonic()
        if kind == MCP:
            self._talk.from_gateway(body)
        elif kind == HELLO:
            self._greeted(json.loads(body))
        elif kind == AGAIN and self._talk.connected:
            self._talk.gateway_lost("was restarted")
            self._hello()

    def _greeted(self, facts: dict[str, Any]) -> None:
        self._watch.reached()
        if facts["version"] != __version__ and not self._told_version:
            self._told_version = True
            text = f"strobe: this client is version {__version__}, the running node {facts['version']}."
            print(text, "`strobe-ctl stop` ends it; the next call starts the new one.", file=sys.stderr, flush=True)
        self._talk.gateway_up()

    def _look_after(self, now: float) -> None:
        """Pings, and when there is no gateway the node it should come from."""
        if not self._talk.connected:
            self._watch.look(now)
            self._talk.tick(now, self._watch.obstacle)
        elif now - self._heard_at > PONG_WAIT_S:
            self._lost("does not answer")
        if now - self._pinged_at > PING_EVERY_S:
            self._pinged_at = now
            if self._talk.connected:
                self._link.send(PING, b"{}")

    def _lost(self, why: str) -> None:
        self._talk.gateway_lost(why)
        self._link.reconnect()
        self._hello()

    def _hello(self) -> None:
        """Once a connection: it waits in the queue until there is a gateway, and each one makes the gateway start anew with us."""
        facts = {"version": __version__, "client": self._client, "pid": os.getpid(), "cwd": os.getcwd(), "env": dict(os.environ)}  # noqa: PTH109
        self._link.send(HELLO, json.dumps(facts).encode("utf-8", "surrogateescape"))

    def _flush(self) -> None:
        for line in self._talk.to_gateway:
            self._link.send(MCP, line)
        self._talk.to_gateway.clear()
        self._write()

    def _write(self) -> None:
        """Blocks while the client does not read. Raises BrokenPipeError."""
        for line in self._talk.to_client:
            rest = memoryview(line + b"\n")
            while rest:
                rest = rest[os.write(1, rest) :]
        self._talk.to_client.clear()

    def _finish(self) -> None:
        """What was asked is answered, unless nobody is there to read it."""
        until = time.monotonic() + ANSWERS_AT_END_S
        while self._talk.owes_answers and not self._link.reader_gone():
            self._turn(read_stdin=False)
            if time.monotonic() > until:
                self._talk.give_up(f"{ANSWERS_AT_END_S:g} s after the end of stdin")
                self._write()

    def leave(self) -> None:
        """Tells the gateway, where there is one."""
        if self._talk.connected:
            self._link.send(BYE, b"{}")
            self._link.close()

    def _load_card(self) -> dict[str, Any]:
        if not self._card:
            self._card = load_card()
        return self._card
