"""What a futex wait stands for: the structs of glibc 2.25 to 2.4x on x86-64 (nptl: struct __pthread_mutex_s, __pthread_rwlock_arch_t,
__pthread_cond_s, struct new_sem, struct pthread's tid), and the words of Rust's std::sys::sync. Owners are found where the lock names one."""

from __future__ import annotations

import struct
from collections.abc import Collection, Mapping
from typing import Final

from actors.stuck_detector.memory import peek, words
from actors.stuck_detector.sample import Thread, Wait

FUTEX: Final = 202
_WAITS: Final = (0, 9, 6, 11, 13)  # WAIT, WAIT_BITSET, LOCK_PI, WAIT_REQUEUE_PI, LOCK_PI2 (futex(2))
_PI: Final = (6, 13)
_TID_MASK: Final = 0x3FFF_FFFF
_KIND_MAX: Final = 0x3FF
_PARKED: Final = 0xFFFF_FFFF
_RUST_LOCKED: Final = 2
_SYSMON_S: Final = 30  # Go's monitor sleeps up to a minute; it wakes nobody that waits for a lock


def futex_wait(thread: Thread, tids: Collection[int], names: Mapping[int, str], runtime: str) -> Wait | None:
    """None: the call is no wait. `tids`: the live threads of its process."""
    address, operation, expected, timeout = thread.args[:4]
    if operation & 0x7F not in _WAITS:
        return None
    timed = bool(timeout) and not (runtime == "go" and _seconds(thread.pid, timeout) >= _SYSMON_S)
    others = frozenset(tids) - {thread.tid}
    found = words(thread.pid, address, 5)
    if found is None:
        return Wait("futex", timed, address, others, what="a futex")
    lock, expected = found[0], expected & 0xFFFF_FFFF
    if operation & 0x7F in _PI and (owner := lock & _TID_MASK):
        return _held("mutex", timed, address, owner, tids, names, "priority-inheriting pthread mutex")
    if expected == lock and lock in tids and not operation & 128:
        return Wait("join", timed, address, frozenset({lock}), lock, what=f"the end of thread {names.get(lock, lock)} (pthread_join)")
    owned = lock in (1, 2) and 0 < found[2] < 1 << 22 and found[3] <= 1 << 16 and found[4] <= _KIND_MAX
    if owned and runtime != "go" and (found[2] in tids or (expected == lock and found[3])):
        return _held("mutex", timed, address, found[2], tids, names, "pthread mutex")
    if (held := _rwlock(thread.pid, address, timed, tids, names, others)) is not None:
        return held
    if lock == 0 and _is_condition(thread.pid, address):
        return Wait("condition", timed, address, others, what="a condition variable")
    if lock == 0 and 1 <= found[1] <= 1 << 16 and found[2] in (0, 128):
        return Wait("semaphore", timed, address, others, what="a semaphore" if runtime != "python" else "a lock of Python's (or another semaphore)")
    if expected == lock == _PARKED:
        return Wait("park", timed, address, others, what="being unparked (Rust thread::park, channel)")
    if expected == lock == _RUST_LOCKED:
        return Wait("lock", timed, address, others, what="a futex lock without an owner field (Rust std::sync::Mutex)")
    return Wait("futex", timed, address, others, what="a futex")


def _held(kind: str, timed: bool, address: int, owner: int, tids: Collection[int], names: Mapping[int, str], what: str) -> Wait:
    if owner in tids:
        return Wait(kind, timed, address, frozenset({owner}), owner, what=f"{what}, held by {names.get(owner, owner)} ({owner})")
    return Wait("abandoned", timed, address, what=f"{what}, held by thread {owner}, which has ended")


def _rwlock(pid: int, address: int, timed: bool, tids: Collection[int], names: Mapping[int, str], others: frozenset[int]) -> Wait | None:
    """The word waited for is __wrphase_futex (+8) or __writers_futex (+12). `cur_writer` is at +24."""
    for back in (8, 12):
        base = words(pid, address - back, 8)
        if base is None:
            continue
        readers, writers, phase, waiting, _pad3, _pad4, writer, shared = base
        if shared or phase > 3 or waiting > 3 or writers > 1 << 16 or readers >> 3 > 1 << 16:
            continue
        if writer in tids and readers & 1 | readers & 2:
            return _held("rwlock", timed, address - back, writer, tids, names, "pthread rwlock, for writing")
        if writer == 0 and readers >> 3 and writers and not readers & 1:
            return Wait("rwlock", timed, address - back, others, what="a pthread rwlock that others hold for reading")
    return None


def _is_condition(pid: int, address: int) -> bool:
    """The word is one of __g_signals[2], at +40 of the condition (glibc ≤ 2.40: 48 bytes); __wrefs, at +36, counts waiters from bit 3 on."""
    for back in (40, 44):
        content = peek(pid, address - back, 48)
        if len(content) < 48:
            continue
        refs0, refs1, size0, size1, _original, waiters = struct.unpack_from("<6I", content, 16)
        if 1 <= waiters >> 3 <= 1 << 16 and max(refs0, refs1) <= 1 << 18 and refs0 | refs1 and max(size0, size1) <= 1 << 18:
            return True
    return False


def _seconds(pid: int, address: int) -> int:
    content = peek(pid, address, 16)
    return struct.unpack("<qq", content)[0] if len(content) == 16 else 0
