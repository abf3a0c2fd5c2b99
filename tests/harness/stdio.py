"""`strobe mcp` as a process whose bytes on stdin and stdout a test writes and reads itself."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from typing import Any

VERSION = "2025-06-18"
ANSWER_S = 30.0


class Shim:
    """A `strobe mcp` process; JSON-RPC in and out."""

    def __init__(self) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([sys.executable, "-m", "strobe.cli", "mcp"], stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0)
        self._buffer = b""

    def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        while data:
            data = data[self.process.stdin.write(data) or 0 :]

    def send(self, method: str, number: int | None = None, **params: Any) -> None:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
        self.write(json.dumps(message if number is None else {**message, "id": number}).encode() + b"\n")

    def receive(self, within_s: float = ANSWER_S) -> dict[str, Any]:
        """The next message to the client."""
        assert self.process.stdout is not None
        until = time.monotonic() + within_s
        while b"\n" not in self._buffer:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, until - time.monotonic()))
            assert ready, f"no answer within {within_s:g} s"
            data = os.read(self.process.stdout.fileno(), 1 << 16)
            assert data, f"strobe mcp closed its stdout: {self.said()}"
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        return message

    def said(self) -> str:
        """On stderr, by one that has ended."""
        assert self.process.stderr is not None
        return self.process.stderr.read().decode(errors="replace")[-2000:]

    def answer(self, number: int) -> dict[str, Any]:
        """The answer to request `number`; each must have one, and none may come twice."""
        message = self.receive()
        assert message["id"] == number, message
        return message

    def open(self) -> dict[str, Any]:
        self.send("initialize", 1, protocolVersion=VERSION, capabilities={}, clientInfo={"name": "test", "version": "1"})
        answer = self.answer(1)
        self.send("notifications/initialized")
        return answer

    def call(self, number: int, tool: str, **arguments: Any) -> dict[str, Any]:
        self.send("tools/call", number, name=tool, arguments=arguments)
        return self.answer(number)

    def end(self) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None and self.process.stderr is not None
        self.process.stdin.close()
        try:
            self.process.wait(10)
        finally:
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()
            self.process.stderr.close()
