"""A change is not written to where its code no longer is: a library has gone between the look and the stop, another may lie in its place."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from actors.session.ptrace.code_map import CodeMap
from actors.session.ptrace.patching import install, restore
from strobe.modules import maps_text
from strobe.protocol.spawner import Patch
from tests.harness.hooking import bias, code_differs, symbols
from tests.harness.launching import eventually
from tests.harness.targets import program


def plugin(name: str, *options: str) -> Path:
    return program("plugin.c", "-O1", "-shared", "-fPIC", *options, name=f"lib{name}.so")


def mapped(pid: int, path: Path) -> Callable[[], bool]:
    return lambda: str(path) in maps_text(pid)


def test_a_library_that_went_is_left_out(tmp_path: Path) -> None:
    one, two, go, end = plugin("one"), plugin("two", "-DSAME"), tmp_path / "go", tmp_path / "end"
    commands = [f"open={one}", f"wait={go}", "close", f"open={two}", f"wait={end}", "call"]
    process = subprocess.Popen([str(program("loader.c", "-O1", "-ldl")), *commands], stdout=subprocess.PIPE, text=True)
    try:
        eventually(mapped(process.pid, one), "the first library is mapped")
        symbol = symbols(one)["plugin_work"]
        address = bias(process.pid, one) + symbol.value
        original = one.read_bytes()[symbol.value : symbol.value + 5]
        patch = Patch(hook=1, address=address, data=b"\xe9\x00\x01\x00\x00", original=original, thunk=address + 0x1000, entries=b"\x12")
        before = CodeMap.parse(maps_text(process.pid))
        assert not install(process.pid, [], [patch], before).skipped
        assert code_differs(process.pid, one)
        assert not restore(process.pid, [patch]).skipped
        go.touch()
        eventually(mapped(process.pid, two), "the second library is mapped")
        assert bias(process.pid, two) + symbols(two)["plugin_work"].value == address, "the second library is to take the first one's place"
        outcome = install(process.pid, [], [patch], before)
        assert outcome.skipped == [patch]
        assert not code_differs(process.pid, two)
        assert not install(process.pid, [], [patch], CodeMap.parse(maps_text(process.pid))).skipped
        restore(process.pid, [patch])
        end.touch()
        assert process.communicate(timeout=30)[0].endswith("call 103\n")
        assert process.returncode == 5
    finally:
        process.kill()
        process.communicate()
