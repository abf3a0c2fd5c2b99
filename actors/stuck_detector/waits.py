"""What each sleeping thread of a tree waits for, by its system call (x86-64 numbers)."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Final

from actors.stuck_detector.futexes import FUTEX, futex_wait
from actors.stuck_detector.links import Links, link, watched_by
from actors.stuck_detector.memory import peek
from actors.stuck_detector.sample import Thread, Tree, Wait

_READS: Final = {0: "read", 17: "read", 19: "read", 45: "recvfrom", 47: "recvmsg", 299: "recvmmsg"}
_WRITES: Final = {1: "write", 18: "write", 20: "write", 44: "sendto", 46: "sendmsg", 40: "sendfile"}
_CHILD: Final = {61: "wait4", 247: "waitid"}
_TIMERS: Final = {35: "nanosleep", 230: "clock_nanosleep"}
_SIGNALS: Final = {34: "pause", 128: "sigwait", 130: "sigsuspend"}
_ACCEPTS: Final = {43, 288}
_CONNECT: Final = 42
_LOCKS_FILE: Final = {72, 73}  # fcntl, flock
_POLL, _PPOLL, _SELECT, _PSELECT = 7, 271, 23, 270
_EPOLL: Final = {232, 281, 441}
_RESTART: Final = 219
_NOWHERE: Final = 0xFFFF_FFFF
POLLED_MAX: Final = 256
SELECTED_MAX: Final = 1024
_OUTSIDE: Final = {"terminal": "stdin", "listen": "network", "tcp": "network", "udp": "network", "timer": "timer", "signal": "signal", "file": "disk"}

_WORDS: Final = {"terminal": "the terminal", "tcp": "a network connection", "listen": "a connection"}


def with_waits(tree: Tree, follow: bool = True) -> Tree:
    """The same, each sleeping thread with its wait. Who holds the other ends of descriptors is looked up only with `follow`, and where some thread waits for
    one: all of /proc must be read for that."""
    return replace(tree, threads=_Reader(tree, follow).threads())


class _Reader:
    def __init__(self, tree: Tree, follow: bool) -> None:
        self.follow = follow
        self.tree = tree
        self.names = {thread.tid: thread.name for thread in tree.threads}
        self.tids: dict[int, list[int]] = {}
        for thread in tree.threads:
            if thread.state not in "ZX":
                self.tids.setdefault(thread.pid, []).append(thread.tid)
        self._links: Links | None = None

    def threads(self) -> list[Thread]:
        return [replace(thread, wait=self.wait(thread)) if thread.state in "SD" else thread for thread in self.tree.threads]

    @property
    def links(self) -> Links:
        if self._links is None:
            self._links = Links.look()
        return self._links

    def wait(self, thread: Thread) -> Wait:
        number, args = thread.syscall, thread.args
        if number is None:
            return Wait("unknown", outside="disk" if thread.state == "D" else "unknown", what=thread.wchan or "something the kernel does not show")
        runtime = self.tree.processes[thread.pid].runtime if thread.pid in self.tree.processes else ""
        if number == FUTEX and (found := futex_wait(thread, self.tids.get(thread.pid, ()), self.names, runtime)):
            return found
        if number in _TIMERS or number == _RESTART:
            return Wait("sleep", True, outside="timer", what="a timer (sleep)")
        if number in _CHILD:
            return self._child(thread)
        if number in _READS or number in _WRITES:
            return self._descriptor(thread, args[0], number in _READS, {**_READS, **_WRITES}[number])
        if number in _ACCEPTS:
            return Wait("accept", outside="network", what=f"a connection (accept on fd {args[0]})")
        if number == _CONNECT:
            return Wait("connect", outside="network", what="a connection to be made (connect)")
        if number in _SIGNALS:
            return Wait("signal", outside="signal", what=f"a signal ({_SIGNALS[number]})")
        if number in _LOCKS_FILE:
            return Wait("file_lock", outside="file lock", what=f"a lock on {link(thread.pid, args[0])}")
        if number in _EPOLL or number in (_POLL, _PPOLL, _SELECT, _PSELECT):
            return self._polled(thread)
        return Wait("syscall", outside="disk" if thread.state == "D" else "kernel", what=f"system call {number} ({thread.wchan or 'unknown'})")

    def _child(self, thread: Thread) -> Wait:
        """wait4(pid, …), waitid(idtype, id, …): one child, or whichever ends first."""
        wanted = thread.args[0] if thread.syscall == 61 else (thread.args[1] if thread.args[0] == 1 else _NOWHERE)
        wanted &= _NOWHERE
        children = [one.pid for one in self.tree.processes.values() if one.parent == thread.pid and wanted in (one.pid, _NOWHERE, 0)]
        wakers = frozenset(tid for pid in children for tid in self.tids.get(pid, ()))
        named = ", ".join(f"{self.tree.processes[pid].name} ({pid})" for pid in children[:3]) or "a child"
        return Wait("child", wakers=wakers, outside="" if wakers else "child", what=f"the end of {named}")

    def _descriptor(self, thread: Thread, number: int, reading: bool, call: str) -> Wait:
        wakers, outside, what = self._reach(thread, number, reading)
        return Wait("read" if reading else "write", False, number, wakers, outside=outside, what=f"{what} ({call} on fd {number})")

    def _reach(self, thread: Thread, number: int, reading: bool) -> tuple[frozenset[int], str, str]:
        """(threads of the tree that can wake it, what else can, in words)."""
        if not self.follow:
            return frozenset(), "outside", f"fd {number}"
        end = self.links.end(thread.pid, number)
        if end.kind == "event":
            return frozenset(self.tids.get(thread.pid, ())) - {thread.tid}, "", "an eventfd of its own"
        if end.kind == "epoll":
            return self._all(thread, watched_by(thread.pid, number))
        pids = self.links.others(end, reading)
        if pids is None:
            outside = "stdin" if number == 0 and end.kind in ("terminal", "other") else _OUTSIDE.get(end.kind, "outside")
            return frozenset(), outside, _WORDS.get(end.kind, end.path or end.kind)
        inside = {pid for pid in pids if pid in self.tids}
        wakers = frozenset(tid for pid in inside for tid in self.tids[pid]) - {thread.tid}
        kind = {"pipe": "a pipe", "unix": "a unix socket", "tcp": "a loopback connection"}[end.kind]
        if not reading and end.kind == "pipe":
            kind = "room in a pipe"
        if pids - inside:
            return wakers, "stdin" if number == 0 else "another process", f"{kind} that process {min(pids - inside)} holds too"
        named = ", ".join(f"{self.tree.processes[pid].name} ({pid})" for pid in sorted(inside)[:3] if pid in self.tree.processes)
        return wakers, "", f"{kind}, whose other end {named or 'nobody'} holds"

    def _polled(self, thread: Thread) -> Wait:
        timed, numbers = self._poll_set(thread)
        wakers, outside, what = self._all(thread, [number for number, _ in numbers])
        if timed:
            return Wait("poll", True, wakers=wakers, outside=outside or "timer", what=f"a timer or {what}" if numbers else "a timer (poll)")
        return Wait("poll", False, wakers=wakers, outside=outside, what=what)

    def _all(self, thread: Thread, numbers: list[int]) -> tuple[frozenset[int], str, str]:
        found = [self._reach(thread, number, True) for number in numbers[:POLLED_MAX]]
        wakers = frozenset().union(*(wakers for wakers, _, _ in found))
        order = ("network", "stdin", "another process", "timer", "signal")
        outside = next((name for name in order if any(name == one for _, one, _ in found)), next((one for _, one, _ in found if one), ""))
        if len(numbers) > POLLED_MAX:
            outside = outside or "outside"
        what = next((words for _, one, words in found if one == outside), "nothing")
        return wakers, outside, f"{what} (poll of {len(numbers)})"

    def _poll_set(self, thread: Thread) -> tuple[bool, list[tuple[int, int]]]:
        """Whether it has a timeout, and (descriptor, events)."""
        number, args = thread.syscall, thread.args
        if number in _EPOLL:
            timed = bool(args[3]) if number == 441 else args[3] & _NOWHERE != _NOWHERE
            return timed, [(one, 1) for one in watched_by(thread.pid, args[0])]
        if number in (_POLL, _PPOLL):
            timed = args[2] & _NOWHERE != _NOWHERE if number == _POLL else bool(args[2])
            content = peek(thread.pid, args[0], 8 * min(args[1], POLLED_MAX))
            found = [struct.unpack_from("<ihh", content, at)[:2] for at in range(0, len(content) - 7, 8)]
            return timed, [(one, events) for one, events in found if one >= 0]
        content = peek(thread.pid, args[1], min(args[0], SELECTED_MAX) // 8 + 8) if args[1] else b""
        bits = int.from_bytes(content, "little") & ((1 << min(args[0], SELECTED_MAX)) - 1)
        return bool(args[4]), [(one, 1) for one in range(bits.bit_length()) if bits >> one & 1]
