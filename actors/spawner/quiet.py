"""Frida without its daemon.

Any use of a Frida device also starts `idund`, a daemon for Apple devices that outlives its host: it is written into a temporary folder and
started when nobody listens on $XDG_RUNTIME_DIR/idun/control (measured with Frida 17.26). So, for as long as Frida looks for it, that
variable names a private folder in which we listen ourselves, and never answer. Nothing is left behind, however this process ends.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import tempfile
from pathlib import Path
from typing import Final

import frida.aio

VARIABLE: Final = "XDG_RUNTIME_DIR"
LOOK_S: Final = 3.0
FOLDER_CHARACTERS_MAX: Final = 70  # sun_path holds 107, and the socket is two folders down


class QuietDevice:
    """The local device, and the connection that keeps the daemon away."""

    def __init__(self, manager: frida.aio.DeviceManager, device: frida.aio.Device, connection: socket.socket | None) -> None:
        self.device = device
        self._manager = manager
        self._connection = connection

    @classmethod
    async def open(cls) -> QuietDevice:
        temporary = tempfile.gettempdir()
        folder = Path(tempfile.mkdtemp(prefix="strobe-frida-", dir=temporary if len(temporary) <= FOLDER_CHARACTERS_MAX else "/tmp"))
        before = os.environ.get(VARIABLE)
        try:
            with _listener(folder) as listener:
                os.environ[VARIABLE] = str(folder)
                manager = frida.aio.DeviceManager()  # type: ignore[no-untyped-call]
                device = await manager.get_device_by_type("local", 0)
                return cls(manager, device, await _accept(listener))
        finally:
            shutil.rmtree(folder)
            if before is None:
                os.environ.pop(VARIABLE, None)
            else:
                os.environ[VARIABLE] = before

    async def close(self) -> None:
        await self._manager.close()
        if self._connection is not None:
            self._connection.close()


def _listener(folder: Path) -> socket.socket:
    (folder / "idun").mkdir()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(folder / "idun" / "control"))
    listener.listen(4)
    listener.setblocking(False)
    return listener


async def _accept(listener: socket.socket) -> socket.socket | None:
    """Frida's connection, or None: this Frida does not look for the daemon."""
    try:
        async with asyncio.timeout(LOOK_S):
            return (await asyncio.get_running_loop().sock_accept(listener))[0]
    except TimeoutError:
        return None
