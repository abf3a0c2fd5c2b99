"""Nobody but the socket's own user gets through, even where file modes would let them."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq

from strobe.runtime.peer_check import pid_of, uid_of
from strobe.runtime.sockets import bind_router

NOBODY = 65534
SENDER = """
import os, sys, zmq
if int(sys.argv[2]): os.setuid(int(sys.argv[2]))
context = zmq.Context()
socket = context.socket(zmq.DEALER)
socket.linger = 1000
socket.connect(sys.argv[1])
socket.send(b"let me in")
context.destroy(1000)
"""


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may enter: the worst case of a wrong mode."""
    with tempfile.TemporaryDirectory(prefix="strobe-peer-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def test_socket_is_private_from_its_first_moment(open_folder: Path) -> None:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    socket = context.socket(zmq.ROUTER)
    lock = bind_router(socket, context, f"ipc://{open_folder}/s")
    assert (open_folder / "s").stat().st_mode & 0o777 == 0o600
    socket.close()
    context.term()
    lock.release()
    assert not (open_folder / "s").exists()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user to be refused")
def test_other_user_is_refused_and_own_is_served(open_folder: Path) -> None:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    socket = context.socket(zmq.ROUTER)
    endpoint = f"ipc://{open_folder}/s"
    lock = bind_router(socket, context, endpoint)
    (open_folder / "s").chmod(0o666)
    try:
        subprocess.run([sys.executable, "-c", SENDER, endpoint, str(NOBODY)], timeout=20, check=True)
        assert socket.poll(300) == 0, "another user's message came through"
        own = subprocess.Popen([sys.executable, "-c", SENDER, endpoint, "0"])
        assert socket.poll(10_000) == zmq.POLLIN
        frames = socket.recv_multipart(copy=False)
        assert frames[-1].bytes == b"let me in"
        assert pid_of(str(frames[-1].get("Peer-Address"))) == own.pid
        own.wait(10)
    finally:
        socket.close()
        context.term()
        lock.release()


@pytest.mark.parametrize("address", [b"", b"127.0.0.1", b"localhost:x:0:1", b"localhost:0"])
def test_address_that_is_not_ipcs_is_nobody(address: bytes) -> None:
    assert uid_of(address) is None and (pid_of(address) is None or address.startswith(b"localhost:x"))
