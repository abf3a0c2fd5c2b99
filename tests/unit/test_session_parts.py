"""The session's pure parts: life cycle, probes, maps, crash words."""

from __future__ import annotations

import os
import signal

import pytest

from actors.session import crash, lifecycle
from actors.session.probes import Installed, Probes
from strobe.errors import StrobeError
from strobe.model.probe import Hook, Place, Plan
from strobe.model.session import SessionState
from strobe.modules import is_own, mapped_modules, module_at

RAW = Plan(ops=b"", typed=False, arguments=[], result=None)


def place(name: str) -> Place:
    return Place(pattern=name, function=name, function_raw=name, full_name=f"{name}()", module="/bin/x", offset=16, size=32)


def test_exit_code_and_signal_are_told_apart() -> None:
    started = lifecycle.step(lifecycle.Life(), lifecycle.Started(7))
    exited = lifecycle.step(started, lifecycle.Ended(3 << 8))
    assert (exited.state, exited.exit_code, exited.signal) == (SessionState.EXITED, 3, None)
    crashed = lifecycle.step(started, lifecycle.Ended(signal.SIGSEGV | 0x80))
    assert (crashed.state, crashed.exit_code, crashed.signal) == (SessionState.CRASHED, None, 11)
    killed = lifecycle.step(started, lifecycle.Ended(signal.SIGKILL))
    assert (killed.state, killed.signal) == (SessionState.EXITED, 9)


def test_a_second_end_changes_nothing_and_over_needs_the_drain() -> None:
    ended = lifecycle.step(lifecycle.step(lifecycle.Life(), lifecycle.Started(7)), lifecycle.Ended(0))
    assert lifecycle.step(ended, lifecycle.Ended(1 << 8)) == ended
    assert not ended.over
    assert lifecycle.step(ended, lifecycle.Drained()).over


def test_stop_keeps_what_happened_before() -> None:
    crashed = lifecycle.step(lifecycle.Life(pid=7), lifecycle.Ended(signal.SIGABRT))
    assert lifecycle.step(crashed, lifecycle.StopAsked(alive=False)).state is SessionState.CRASHED
    assert lifecycle.step(lifecycle.Life(pid=7), lifecycle.StopAsked(alive=True)).state is SessionState.STOPPED


def test_probes_difference_installs_once_and_reenables() -> None:
    probes = Probes()
    probes.patterns = probes.changed_patterns(["a", "b", "a"], [])
    assert probes.patterns == ["a", "b"]
    (hook,) = probes.new_hooks([place("a")], [0x1000], [RAW])
    probes.installed[0x1000] = Installed(hook, None)
    assert probes.difference({0x1000: place("a"), 0x2000: place("b")}).install == {0x2000: place("b")}
    gone = probes.difference({})
    assert [item.hook.id for item in gone.disable] == [1]
    probes.installed[0x1000].enabled = False
    back = probes.difference({0x1000: place("a")})
    assert back.install == {}
    assert [item.hook.id for item in back.enable] == [1]
    assert isinstance(hook, Hook)


def test_removing_an_unknown_pattern_names_it() -> None:
    with pytest.raises(StrobeError, match="'nope' is not active"):
        Probes().changed_patterns([], ["nope"])


def test_own_maps_have_this_interpreter_and_libc() -> None:
    modules = mapped_modules(os.getpid())
    libc = next(module for module in modules if module.path.rsplit("/", 1)[-1].startswith("libc.so"))
    assert module_at(modules, libc.start + 10) == libc
    assert libc.bias == libc.start
    assert not is_own(libc.path, "/tmp/prog")
    assert is_own("/opt/app/libown.so", "/opt/app/prog")


def test_crash_words() -> None:
    regs = dict.fromkeys(crash.GREGS, 0)
    page = crash.Crash(11, 1, 0, 5, 5, 0, 0, 0, regs, 0, b"", "", "main")
    assert crash.summary(page, [], None) == "SIGSEGV (address not mapped) at 0x0"
    sent = crash.Crash(6, -6, 0, 5, 5, 9, 0, 0, regs, 0, b"", "", "main")
    assert crash.cause(sent) == "sent by process 9"
    assert crash.dwarf_registers(page)[16] == 0


def test_a_stack_overflow_is_told_from_other_bad_addresses() -> None:
    maps = "1000-9000 rw-p 0 00:00 0\n7f0000000000-7f0000021000 rw-p 0 00:00 0 [stack]\n"

    def cause(address: int, rsp: int) -> str:
        regs = dict.fromkeys(crash.GREGS, 0) | {"rsp": rsp}
        return crash.cause(crash.Crash(11, 1, address, 5, 5, 0, 0, 0, regs, 0, b"", maps, "main"))

    assert cause(0x7EFFFFFFFFF8, 0x7F0000000000) == "stack overflow"
    assert cause(0x7EFFFFFFE000, 0x7EFFFFFFD000) == "stack overflow"  # a large frame
    assert cause(0, 0x7F0000000000) == "address not mapped"
    assert cause(0x7EFFFFFFFFF8, 0x7F0000010000) == "address not mapped"  # the stack has room


def test_codes_have_their_names() -> None:
    regs = dict.fromkeys(crash.GREGS, 0)
    pairs = ((11, 2), (7, 2), (8, 1), (6, -6), (4, 99))
    names = [crash.code_name(crash.Crash(signo, code, 0, 5, 5, 0, 0, 0, regs, 0, b"", "", "main")) for signo, code in pairs]
    assert names == ["SEGV_ACCERR", "BUS_ADRERR", "FPE_INTDIV", "SI_TKILL", "code 99"]
