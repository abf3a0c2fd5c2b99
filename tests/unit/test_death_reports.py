"""Last words of runtimes, as they print them, and the kernel's count of kills for want of memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from actors.session.oom import oom_file, oom_kills
from actors.session.reports import MESSAGE_MAX, reports_in

# text → headline, file, line, function of each report in it
WORDS: dict[str, list[tuple[str, str | None, int | None, str | None]]] = {
    "terminate called after throwing an instance of 'std::runtime_error'\n  what():  disk full: sda\n": [
        ("uncaught std::runtime_error: disk full: sda", None, None, None)
    ],
    "terminate called after throwing an instance of 'int'\n": [("uncaught int", None, None, None)],
    "libc++abi: terminating due to uncaught exception of type shop::Error: no stock\n": [("uncaught shop::Error: no stock", None, None, None)],
    "\nthread 'main' panicked at src/main.rs:4:5:\nfirst\nsecond\nnote: run with `RUST_BACKTRACE=1`": [("panic: first\nsecond", "src/main.rs", 4, None)],
    "thread 'io' panicked at 'old form', src/io.rs:7:1\n": [("panic: old form", "src/io.rs", 7, None)],
    "a.out: a.c:12: int f(int): Assertion `x > 0 && \"why\"' failed.\n": [('assertion failed: x > 0 && "why"', "a.c", 12, "int f(int)")],
    "free(): invalid pointer\n": [("glibc: free(): invalid pointer", None, None, None)],
    "*** stack smashing detected ***: terminated\n": [("glibc: stack smashing detected", None, None, None)],
    "b.c:3:9: runtime error: division by zero\n": [("UndefinedBehaviorSanitizer: undefined behaviour: division by zero", "b.c", 3, None)],
    "==9==ERROR: AddressSanitizer: double-free on 0x602 in thread T0:\n    #0 0x1 in free (/lib/libasan.so+0x1)\n"
    "    #1 0x2 in g a.c:5\n    #2 0x3 in main a.c:9\n0x602 is located\n"
    "    #0 0x9 in h z.c:1\n": [("AddressSanitizer: double-free: on 0x602 in thread T0:", "a.c", 5, "g")],
    "the panicked at once; Assertion failed; free lunch; 12:3: runtime\n": [],
}


@pytest.mark.parametrize("text", WORDS)
def test_last_words(text: str) -> None:
    for form in (text, text.replace("\n", "\r\n")):
        found = reports_in("before\n" + form)
        assert [(one.headline(), one.file, one.line, one.function) for one in found] == WORDS[text]


def test_reports_come_in_the_order_of_the_text_and_are_bounded() -> None:
    text = "a.c:1:1: runtime error: one\nfree(): invalid size\n" + "x" * 3 + "\n"
    assert [one.kind for one in reports_in(text)] == ["sanitizer", "heap"]
    assert [one.fatal for one in reports_in(text)] == [False, True]
    assert reports_in("a.c:1:1: runtime error: last words\n")[0].fatal
    long = reports_in("terminate called after throwing an instance of 'E'\n  what():  " + "y" * 9000)
    assert len(long[0].message or "") == MESSAGE_MAX


@pytest.mark.parametrize(("line", "file"), [("0::/user.slice/a", "user.slice/a/memory.events"), ("7:cpu,memory:/a/b", "memory/a/b/memory.oom_control")])
def test_the_oom_count_is_of_the_targets_own_cgroup(tmp_path: Path, line: str, file: str) -> None:
    proc, root = tmp_path / "proc", tmp_path / "cgroup"
    (proc / "7").mkdir(parents=True)
    (proc / "7" / "cgroup").write_text(f"3:pids:/x\n{line}\n")
    assert oom_file(7, root, proc) is None
    (root / file).parent.mkdir(parents=True)
    (root / file).write_text("low 0\noom 4\noom_kill 2\n")
    assert oom_file(7, root, proc) == root / file
    assert oom_kills(root / file) == 2
    assert oom_kills(None) is None
    assert oom_file(8, root, proc) is None
