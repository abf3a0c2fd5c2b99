"""Client of a keeper's control socket (agent/native/KEEPER.md, `control`). Every call ends within its timeout."""

from __future__ import annotations

import errno
import os
import socket
import struct
import threading
import time
from pathlib import Path
from typing import Final

from strobe.errors import Code, StrobeError

PACKET_BYTES: Final = 65536
_REPLY: Final = struct.Struct("=iI")
_PEER: Final = struct.Struct("=3i")  # struct ucred
_QUEUE_RETRY_S: Final = 0.005


class Control:
    """One connection, made on first use and kept. For any thread."""

    def __init__(self, directory: Path, *, timeout_s: float = 5.0) -> None:
        self._directory = directory
        self._timeout_s = timeout_s
        self._socket: socket.socket | None = None
        self._lock = threading.Lock()  # one question at a time: replies carry no name

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def peer_pid(self) -> int:
        """The keeper's pid, as the kernel knows it."""
        pid: int = _PEER.unpack(self._connected().getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))[0]
        return pid

    def write(self, data: bytes) -> None:
        """Queues bytes for the target's stdin. PROCESS_EXITED when it is closed, TIMEOUT when the target does not read in time."""
        deadline = time.monotonic() + self._timeout_s
        for start in range(0, len(data), PACKET_BYTES):
            part = data[start : start + PACKET_BYTES]
            while (refused := self._ask(b"i" + part)) == errno.EAGAIN:
                if time.monotonic() > deadline:
                    what = f"The target has not read its stdin: {start} of {len(data)} bytes are queued."
                    raise StrobeError(Code.TIMEOUT, what, "Send the rest once it reads again.", value=start)
                time.sleep(_QUEUE_RETRY_S)
            if refused:
                raise StrobeError(Code.PROCESS_EXITED, "The target's stdin is closed.", 'Launch with stdin {"open": true} to send input.', value=start)

    def close_stdin(self) -> None:
        """End of file after what is queued. Closing twice is no error."""
        self._ask(b"c")

    def kill_tree(self, signal: int) -> None:
        """To the target, its process group and every descendant, daemons too."""
        self._expect(b"k" + bytes([signal]), "signal the target's processes", signal)

    def resize(self, rows: int, columns: int) -> None:
        self._expect(b"r" + struct.pack("=HH", rows, columns), "resize the terminal", (rows, columns))

    def drain(self) -> None:
        """From now on output is read and thrown away, and the keeper ends with the target."""
        self._expect(b"d", "drain the output", None)

    def catch_up(self) -> bool:
        """All that the target wrote before this call is in the output file when it returns. False: the disk is full."""
        return self._ask(b"f") == 0

    def _expect(self, packet: bytes, doing: str, value: object) -> None:
        refused = self._ask(packet)
        if refused:
            what = f"The keeper could not {doing}: {os.strerror(refused)}."
            raise StrobeError(Code.VALIDATION_ERROR, what, "Check debug_session status.", value=value)

    def _ask(self, packet: bytes) -> int:
        """0, or the errno that the keeper answered."""
        try:
            with self._lock:
                connection = self._connected()
                connection.send(packet)
                reply = connection.recv(_REPLY.size)
        except TimeoutError:
            self.close()
            raise StrobeError(Code.TIMEOUT, f"The keeper did not answer within {self._timeout_s} s.", "Try again.", value=str(self._directory)) from None
        except OSError as error:
            self.close()
            raise self._gone(error.strerror or str(error)) from None
        if len(reply) != _REPLY.size:
            self.close()
            raise self._gone("it closed the connection")
        return -int(_REPLY.unpack(reply)[0])

    def _connected(self) -> socket.socket:
        if self._socket is None:
            self._socket = self._connect()
        return self._socket

    def _connect(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC)
        connection.settimeout(self._timeout_s)
        try:
            folder = os.open(self._directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                connection.connect(f"/proc/self/fd/{folder}/control")  # the folder's own path may be too long for a socket address
            finally:
                os.close(folder)
        except OSError as error:
            connection.close()
            raise self._gone(error.strerror or str(error)) from None
        return connection

    def _gone(self, reason: str) -> StrobeError:
        return StrobeError(
            Code.PROCESS_EXITED,
            f"The keeper of {self._directory.name} cannot be reached: {reason}.",
            "Its target has ended; query what was captured.",
            value=str(self._directory),
        )
