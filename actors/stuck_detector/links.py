"""What file descriptors lead to, and who holds the other end: pipes by inode, unix sockets by sock_diag(7), loopback TCP by /proc/net/tcp."""

from __future__ import annotations

import os
import socket
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from actors.stuck_detector.sample import read

PROCESSES_MAX: Final = 4_000
FDS_MAX: Final = 1_024
_LISTEN: Final = "0A"
_DUMP: Final = 0x300  # NLM_F_ROOT | NLM_F_MATCH
_REQUEST: Final = 1
_SOCK_DIAG_BY_FAMILY: Final = 20
_SHOW_PEER: Final = 4
_PEER: Final = 2  # UNIX_DIAG_PEER
_KINDS: Final = {
    "/dev/pts/": "terminal", "/dev/tty": "terminal", "/dev/null": "null", "anon_inode:[eventfd": "event", "anon_inode:[timerfd": "timer",
    "anon_inode:[signalfd": "signal", "anon_inode:[eventpoll": "epoll", "/": "file",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class End:
    """`kind`: pipe, unix, tcp, listen, terminal, null, file, event, timer, signal, epoll, udp, other."""

    kind: str
    inode: int = 0
    writes: bool = False
    path: str = ""


@dataclass
class Links:
    """One look at who holds what; made only when a thread waits for a descriptor."""

    holders: dict[tuple[str, int, bool], set[int]] = field(default_factory=dict)  # (pipe | socket, inode, writes) → pids
    peers: dict[int, int] = field(default_factory=dict)  # unix socket's inode → its peer's
    tcp: dict[int, tuple[str, str, str]] = field(default_factory=dict)  # inode → (local, remote, state)

    @classmethod
    def look(cls) -> Links:
        links = cls()
        own = os.getpid()
        for pid in [int(name) for name in os.listdir("/proc") if name.isdigit()][:PROCESSES_MAX]:  # noqa: PTH208
            if pid != own:
                links._add(pid)
        links.peers = _unix_peers()
        for family in ("tcp", "tcp6"):
            for line in _lines(f"/proc/net/{family}")[1:]:
                parts = line.split()
                links.tcp[int(parts[9])] = (parts[1], parts[2], parts[3])
        return links

    def _add(self, pid: int) -> None:
        try:
            numbers = os.listdir(f"/proc/{pid}/fd")[:FDS_MAX]  # noqa: PTH208
        except OSError:
            return
        for number in numbers:
            target = link(pid, int(number))
            if target.startswith("pipe:["):
                self.holders.setdefault(("pipe", int(target[6:-1]), True), set())
                mode = open_mode(pid, int(number))
                for writes in {1: (True,), 2: (True, False)}.get(mode, (False,)):
                    self.holders.setdefault(("pipe", int(target[6:-1]), writes), set()).add(pid)
            elif target.startswith("socket:["):
                self.holders.setdefault(("socket", int(target[8:-1]), True), set()).add(pid)

    def end(self, pid: int, number: int) -> End:
        target = link(pid, number)
        if target.startswith("pipe:["):
            return End("pipe", int(target[6:-1]), open_mode(pid, number) == 1)
        if target.startswith("socket:["):
            inode = int(target[8:-1])
            if inode in self.tcp:
                return End("listen" if self.tcp[inode][2] == _LISTEN else "tcp", inode)
            return End("unix" if inode in self.peers else "udp", inode)
        for prefix, kind in _KINDS.items():
            if target.startswith(prefix):
                return End(kind, path=target)
        return End("other", path=target)

    def others(self, end: End, reading: bool) -> set[int] | None:
        """Pids that hold the end which could wake a reader or writer of this one. None: it leaves this machine, or nobody knows."""
        if end.kind == "pipe":
            return self.holders.get(("pipe", end.inode, reading), set())
        if end.kind == "unix" and (peer := self.peers.get(end.inode)):
            return self.holders.get(("socket", peer, True), set())
        if end.kind == "tcp":
            local, remote, _ = self.tcp[end.inode]
            for inode, (theirs, ours, _state) in self.tcp.items():
                if (theirs, ours) == (remote, local) and inode:
                    return self.holders.get(("socket", inode, True), set())
        return None


def link(pid: int, number: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/fd/{number}")  # noqa: PTH115
    except OSError:
        return ""


def open_mode(pid: int, number: int) -> int:
    """0 reading, 1 writing, 2 both (the low bits of `flags` in fdinfo, octal)."""
    line = next((line for line in read(f"/proc/{pid}/fdinfo/{number}").splitlines() if line.startswith("flags:")), "flags: 0")
    return int(line.split()[1], 8) & 3


def watched_by(pid: int, epoll: int) -> list[int]:
    """The descriptors in an epoll set (fdinfo, `tfd:`)."""
    lines = read(f"/proc/{pid}/fdinfo/{epoll}").splitlines()
    return [int(line.split()[1]) for line in lines if line.startswith("tfd:")]


def _unix_peers() -> dict[int, int]:
    """sock_diag(7): struct unix_diag_req of all states, and UNIX_DIAG_PEER of each answer. 0: no peer."""
    found: dict[int, int] = {}
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 4) as netlink:  # NETLINK_SOCK_DIAG
            netlink.settimeout(0.5)
            body = struct.pack("<BBHIIIII", socket.AF_UNIX, 0, 0, 0xFFFF_FFFF, 0, _SHOW_PEER, 0, 0)
            netlink.send(struct.pack("<IHHII", 16 + len(body), _SOCK_DIAG_BY_FAMILY, _REQUEST | _DUMP, 1, 0) + body)
            while _take_peers(netlink.recv(1 << 18), found):
                pass
    except OSError:
        return found  # no such kernel module: unix sockets lead nowhere we know
    return found


def _take_peers(answer: bytes, found: dict[int, int]) -> bool:
    """Whether more is to come."""
    at = 0
    while at + 16 <= len(answer):
        size, kind = struct.unpack_from("<IH", answer, at)
        if kind != _SOCK_DIAG_BY_FAMILY or size < 32:
            return False
        (inode,) = struct.unpack_from("<I", answer, at + 20)
        found[inode] = 0
        extra = at + 32
        while extra + 4 <= at + size:
            length, attribute = struct.unpack_from("<HH", answer, extra)
            if attribute == _PEER and length >= 8:
                (found[inode],) = struct.unpack_from("<I", answer, extra + 4)
            extra += max(4, (length + 3) & ~3)
        at += (size + 3) & ~3
    return True


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []
