"""systemd's readiness protocol (sd_notify(3)): a datagram to $NOTIFY_SOCKET."""

from __future__ import annotations

import os
import socket


def notify_service(state: str) -> None:
    """`READY=1`, `STOPPING=1`. Does nothing where no service manager listens."""
    address = os.environ.get("NOTIFY_SOCKET")
    if address:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
            channel.sendto(state.encode(), "\0" + address[1:] if address.startswith("@") else address)
