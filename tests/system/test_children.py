"""Children of every kind, of a compiled program, through `strobe mcp`: each with its pid, its calls and its output; all as in a run without Strobe."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest

from tests.harness.load import patient
from tests.harness.load import pids as pids_of
from tests.harness.mcp import Strobe, strobe_mcp
from tests.harness.targets import TARGETS, program, require, without_inherited_signals

pytestmark = pytest.mark.anyio
PATTERNS: Final = ["*_work", "*_one", "level"]
FLAGS: Final = ("-O1", "-Wno-format-truncation")
SEEN_S: Final = 20.0
REAL: Final = [
    "seq 1 24 | xargs -P 8 -n 1 sh -c 'expr $0 + 0' | sort -n | tail -2; find /etc/hostname -exec wc -c {} \\;",
    "tar cf - /etc/hostname 2>/dev/null | gzip | zcat | tar tf -; timeout 1 sleep 5; echo $?; env -i /usr/bin/env | wc -l; nice -n 3 nice; setsid -w id -u",
]
PLAIN_S: Final = 60.0


def children(*flags: str, **more: str) -> Path:
    return program("children.c", *FLAGS, *flags, **more)


@pytest.fixture(scope="module")
async def home(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Path]:
    """The home of one node for all tests of this file; at the end it is stopped, and must leave nothing."""
    found = tmp_path_factory.mktemp("children") / "home"
    async with strobe_mcp(found):
        yield found


@pytest.fixture
async def strobe(home: Path) -> AsyncIterator[Strobe]:
    async with strobe_mcp(home, keep_node=True) as connected:
        yield connected
        for item in (await connected.call("debug_session", action="list"))["sessions"]:
            await connected.call("debug_session", action="stop", sessionId=item["sessionId"], kill=True)


def plain(path: Path, *args: str, **env: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [path, *args], capture_output=True, check=False, timeout=PLAIN_S, stdin=subprocess.DEVNULL, preexec_fn=without_inherited_signals,
        env={**os.environ, **env},
    )  # fmt: skip


async def until(found: Callable[[], Awaitable[Any]], what: str) -> Any:
    """The first answer of `found` that is true."""
    deadline = time.monotonic() + SEEN_S
    while not (answer := await found()):
        assert time.monotonic() < deadline, f"{what} was not seen within {SEEN_S:g} s"
        await asyncio.sleep(0.05)
    return answer


async def same_as_plain(strobe: Strobe, *args: str, path: Path | None = None, **env: str) -> tuple[str, dict[str, Any]]:
    """Session and final status of a run whose output and exit status are those of one without Strobe."""
    target = path or children()
    expected = plain(target, *args, **env)
    session = await strobe.launch(target, *args, root=TARGETS, trace=PATTERNS, **({"env": env} if env else {}))
    status = await strobe.until_ended(session)
    assert (status.get("exitCode"), status.get("signal")) == ((expected.returncode, None) if expected.returncode >= 0 else (None, -expected.returncode))

    async def all_printed() -> bool:
        return len((await strobe.output(session))[0]) >= len(expected.stdout)

    await until(all_printed, f"all output of {args}")
    assert await strobe.output(session) == (expected.stdout, expected.stderr)
    return session, status


async def calls(strobe: Strobe, session: str) -> dict[str, list[int]]:
    """Pids by function, in the order of the calls."""
    found: dict[str, list[int]] = {}
    for function, pid in await strobe.rows(session, "SELECT function, pid FROM calls ORDER BY ts LIMIT 500"):
        found.setdefault(function, []).append(pid)
    return found


async def writers(strobe: Strobe, session: str) -> dict[str, int]:
    """Pid by what it printed; each line here is printed once."""
    rows = await strobe.rows(session, "SELECT text, pid FROM output_v ORDER BY n")
    return {line: pid for text, pid in rows for line in text.splitlines()}


async def test_forked_children_have_their_calls_and_output(strobe: Strobe) -> None:
    session, _ = await same_as_plain(strobe, "fork", "20")
    found = await calls(strobe, session)
    assert len(found["fork_one"]) == 20 and len(set(found["fork_one"])) == 1
    assert len(set(found["forked_work"])) == 20 and not set(found["forked_work"]) & set(found["fork_one"])
    wrote = await writers(strobe, session)
    assert [wrote[f"forked {n}"] for n in range(20)] == found["forked_work"]
    assert wrote["ended with 3"] == found["fork_one"][0]
    pid = found["forked_work"][7]
    reply = await strobe.call("debug_query", sessionId=session, pid=pid)
    assert [event.get("text", event.get("function")) for event in reply["events"]] == ["forked_work", "forked 7\n", "forked_work"]
    assert reply["pids"] == sorted({*found["fork_one"], *found["forked_work"]})


@pytest.mark.parametrize(("way", "caller"), [("exec", "exec_one"), ("vfork", "exec_one"), ("spawn", "spawn_one"), ("search", "search_one")])
async def test_a_new_program_is_traced_from_its_start(strobe: Strobe, way: str, caller: str) -> None:
    session, status = await same_as_plain(strobe, way, "3")
    found = await calls(strobe, session)
    assert len(found[caller]) == 3
    assert len(set(found["leaf_work"])) == 3
    assert (await writers(strobe, session))["leaf 1"] == found["leaf_work"][1]
    assert [(one["pid"], one["followed"]) for one in status["processes"]] == [(pid, True) for pid in found["leaf_work"]]
    assert all(one["hooks"] >= 7 and one["parent"] == found[caller][0] and one["command"] == str(children()) for one in status["processes"])


async def test_a_shell_is_passed_through(strobe: Strobe) -> None:
    """system("a; b") and popen: nothing of the shell is traced, what it starts is."""
    session, status = await same_as_plain(strobe, "shell")
    found = await calls(strobe, session)
    assert len(set(found["leaf_work"])) == 3
    shells = [one for one in status["processes"] if Path(one["command"]).name in ("dash", "bash", "sh", "busybox")]
    assert shells and not any(one["followed"] for one in shells) and all("shell" in one["whyNot"] for one in shells)
    assert {one["pid"] for one in status["processes"] if one["followed"]} == set(found["leaf_work"])


async def test_levels_of_programs(strobe: Strobe) -> None:
    session, _ = await same_as_plain(strobe, "level", "3")
    found = await calls(strobe, session)
    assert len(set(found["level"])) == 4 and found["leaf_work"] == found["level"][3:]


@pytest.mark.parametrize("way", ["self", "thread", "odd"])
async def test_a_program_starts_as_without_strobe(strobe: Strobe, way: str) -> None:
    """A process that becomes another program, by a thread that is not its first; signals blocked and ignored, files, environment."""
    session, _ = await same_as_plain(strobe, way)
    if way != "odd":
        assert len((await calls(strobe, session))["leaf_work"]) == 1


@pytest.mark.parametrize("way", ["crash", "exec-crash"])
async def test_a_crash_of_a_child_is_its_own(strobe: Strobe, way: str) -> None:
    session, status = await same_as_plain(strobe, way)
    assert status["status"] == "exited"
    [[pid, text]] = await strobe.rows(session, "SELECT pid, text FROM crashes_v")
    assert pid != status["pid"] and text.startswith("SIGSEGV") and "children.c" in text
    assert status["crash"]["pid"] == pid


async def test_the_targets_own_crash_comes_first(strobe: Strobe) -> None:
    _, status = await same_as_plain(strobe, "both-crash")
    assert (status["status"], status["signal"]) == ("crashed", signal.SIGSEGV)
    assert status["crash"]["pid"] == status["pid"]


async def test_children_that_are_killed(strobe: Strobe) -> None:
    session, status = await same_as_plain(strobe, "killed", "2")
    assert (await strobe.output(session))[0].splitlines() == [b"ended by signal 9", b"ended by signal 15"]
    assert status["status"] == "exited"


async def test_a_child_outlives_its_parent(strobe: Strobe) -> None:
    session, _ = await same_as_plain(strobe, "outlive")
    found = await calls(strobe, session)
    assert (await writers(strobe, session))["forked 8"] == found["forked_work"][0]


async def test_a_daemon_is_followed(strobe: Strobe, tmp_path: Path) -> None:
    """Double fork, a session of its own, standard files closed; then it becomes another program."""
    word = tmp_path / "word"
    session, _ = await same_as_plain(strobe, "daemon", "1", str(word))

    async def done() -> bool:
        found = await calls(strobe, session)
        return len(found.get("forked_work", [])) == 1 and found.get("leaf_work") == found["forked_work"]

    await until(done, "the daemon's call after its exec")
    assert word.read_text() == "the daemon did 5"


@pytest.mark.parametrize("kind", ["static", "musl", "setuid", "script"])
async def test_what_cannot_be_traced_runs_on(strobe: Strobe, kind: str, tmp_path: Path) -> None:
    """Its output and its end are there; why it is not traced is told."""
    other = _other_program(kind, tmp_path)
    session, status = await same_as_plain(strobe, "vfork", CHILD=str(other))
    assert "leaf_work" not in (await calls(strobe, session)) or kind == "script"
    first = status["processes"][0]
    assert first["followed"] is False
    assert {"static": "statically", "musl": "musl", "setuid": "privileges", "script": "shell"}[kind] in first["whyNot"]
    assert ("was not followed" in " ".join(status.get("warnings", []))) == (kind != "script")


def _other_program(kind: str, folder: Path) -> Path:
    if kind == "static":
        return children("-static", name="children-static")
    if kind == "musl":
        require("musl-gcc")
        return children(compiler="musl-gcc", name="children-musl")
    other = folder / f"other-{kind}"
    if kind == "script":
        other.write_text(f'#!/bin/sh\n"{children()}" "$@"\n')
        other.chmod(0o755)
        return other
    if os.getuid():
        pytest.skip("only root can make a program of another user's")
    shutil.copy(children(), other)
    for parent in (folder, *folder.parents):
        if not parent.stat().st_mode & 1:
            pytest.skip(f"{parent} is closed to other users")
    os.chown(other, 65534, 65534)
    other.chmod(0o4755)
    return other


async def test_a_thousand_children(strobe: Strobe) -> None:
    session, _ = await same_as_plain(strobe, "fork", "1000")
    rows = await strobe.rows(session, "SELECT function, count(*), count(DISTINCT pid) FROM calls GROUP BY function ORDER BY function")
    [[lost]] = await strobe.rows(session, "SELECT coalesce(sum(lost), 0)::BIGINT FROM losses l JOIN hooks h ON h.id = l.hook WHERE function = 'forked_work'")
    assert lost <= 100  # of a machine so busy that nobody empties the lanes: each child takes one
    assert rows == [["fork_one", 1000, 1], ["forked_work", 1000 - lost, 1000 - lost]]
    rows = await strobe.rows(session, "SELECT count(*), count(DISTINCT o.pid) FROM output_v o WHERE text LIKE 'forked%'")
    assert rows == [[1000, 1000]]


@pytest.mark.parametrize(("way", "count"), [("spawn", 60), pytest.param("exec", 1000, marks=pytest.mark.full)])
async def test_many_programs_in_a_row(strobe: Strobe, way: str, count: int) -> None:
    session, status = await same_as_plain(strobe, way, str(count))
    rows = await strobe.rows(session, "SELECT count(*), count(DISTINCT pid) FROM calls WHERE function = 'leaf_work'")
    assert rows == [[count, count]], status.get("warnings")
    hooks = await strobe.rows(session, "SELECT count(*) FROM hooks")
    assert hooks[0][0] < 40  # one for a function, not for each process


def first_bytes(pid: int, path: Path, function: str) -> tuple[bytes, bytes]:
    """Of a function: in the process, and in its file (of which all is mapped as it lies there, up to whole pages)."""
    symbols = subprocess.run([require("nm"), path], capture_output=True, text=True, check=True).stdout
    offset = next(int(line.split()[0], 16) for line in symbols.splitlines() if line.endswith(f" {function}"))
    maps = Path(f"/proc/{pid}/maps").read_text().splitlines()
    base = min(int(line.split("-")[0], 16) for line in maps if line.endswith(str(path)))
    with Path(f"/proc/{pid}/mem").open("rb") as memory, path.open("rb") as file:
        memory.seek(base + offset)
        file.seek(offset)
        return memory.read(16), file.read(16)


async def test_a_stop_leaves_all_processes_as_they_were(strobe: Strobe) -> None:
    path = children()
    session = await strobe.launch(path, "keep", "6000", root=TARGETS, trace=["tick_work"])

    async def all_three() -> list[list[int]] | None:
        found = await strobe.rows(session, "SELECT DISTINCT pid FROM calls WHERE function = 'tick_work'")
        return found if len(found) == 3 else None

    pids = [pid for [pid] in await until(all_three, "a call in each of three processes")]
    try:
        assert all(now[:1] == b"\xe9" and now != own for now, own in (first_bytes(pid, path, "tick_work") for pid in pids))
        await strobe.call("debug_session", action="stop", sessionId=session, retain=True)
        for pid in pids:
            now, own = first_bytes(pid, path, "tick_work")
            assert now == own, pid
            assert "\nTracerPid:\t0\n" in Path(f"/proc/{pid}/status").read_text()
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("role", ["session", pytest.param("spawner", marks=pytest.mark.full)])
async def test_a_kill_leaves_nobody_at_a_gate(home: Path, strobe: Strobe, role: str) -> None:
    """kill -9 while one program after another is on its way in: each runs on, traced or not."""
    path, count = children(), 120
    expected = plain(path, "vfork", str(count))
    session = await strobe.launch(path, "vfork", str(count), root=TARGETS, trace=PATTERNS)
    dice = random.Random(f"2026-{role}")
    for _ in range(3):
        await asyncio.sleep(dice.uniform(0.02, 0.25))
        found = (await pids_of(home)).get(f"{role}:{session}")
        if found is not None:
            with suppress(ProcessLookupError):
                os.kill(found, signal.SIGKILL)
    status = await until(lambda: ended(strobe, session), "the end")
    assert (status.get("exitCode"), status.get("signal")) == (expected.returncode, None)

    async def all_printed() -> bool:
        reply = await patient(strobe, "debug_query", sessionId=session, eventType="stdout", limit=500, maxTokens=50_000)
        return "".join(event["text"] for event in reply["events"]).encode() == expected.stdout

    await until(all_printed, "all of its output")


async def ended(strobe: Strobe, session: str) -> dict[str, Any] | None:
    status = await patient(strobe, "debug_session", action="status", sessionId=session)
    return status if status["status"] in ("exited", "crashed", "lost") else None


async def test_patterns_that_come_later_reach_children_that_run(strobe: Strobe) -> None:
    path = children()
    session = await strobe.launch(path, "keep", "6000", root=TARGETS)

    async def entered() -> bool:
        return any(one.get("followed") for one in (await strobe.status(session)).get("processes", []))

    await until(entered, "the child's new program")
    for _ in range(2):  # and again after they were removed
        await strobe.call("debug_trace", sessionId=session, add=["tick_work"])
        newest = (await strobe.rows(session, "SELECT coalesce(max(n), 0) FROM calls"))[0][0]

        async def all_three(since: int = newest) -> bool:
            return len(await strobe.rows(session, f"SELECT DISTINCT pid FROM calls WHERE n > {since}")) == 3

        await until(all_three, "calls of three processes")
        await strobe.call("debug_trace", sessionId=session, remove=["tick_work"])
        for [pid] in await strobe.rows(session, "SELECT DISTINCT pid FROM calls"):
            now, own = first_bytes(pid, path, "tick_work")
            assert now == own
    await strobe.call("debug_session", action="stop", sessionId=session, kill=True)


async def test_a_target_that_became_another_program_is_traced_on(strobe: Strobe) -> None:
    """What was known of its code is forgotten: patterns that come later find the new program's."""
    session = await strobe.launch(children(), "self-tick", "6000", root=TARGETS)

    async def became() -> bool:
        return bool((await strobe.status(session)).get("processes", [{}])[0].get("followed"))

    await until(became, "the new program")
    reply = await strobe.call("debug_trace", sessionId=session, add=["tick_work"])
    assert reply["hookedFunctions"] == 1, reply
    [pid] = (await until(lambda: strobe.rows(session, "SELECT DISTINCT pid FROM calls"), "a call"))[0]
    assert pid == (await strobe.status(session))["pid"]
    assert first_bytes(pid, children(), "tick_work")[0][:1] == b"\xe9"
    await strobe.call("debug_trace", sessionId=session, remove=["tick_work"])
    now, own = first_bytes(pid, children(), "tick_work")
    assert now == own
    await strobe.call("debug_session", action="stop", sessionId=session, kill=True)


@pytest.mark.parametrize("command", REAL)
async def test_real_programs_in_a_shell(strobe: Strobe, command: str) -> None:
    """Pipes, programs that start programs, many at once, an empty environment; all untouched."""
    shell = Path(require("bash"))
    _, status = await same_as_plain(strobe, "-c", command, path=shell)
    assert sum(bool(one["followed"]) for one in status["processes"]) >= 3
    assert "warnings" not in status, status["warnings"]


async def test_followed_by_no_one(strobe: Strobe, home: Path) -> None:
    settings = home / "settings.json"
    settings.write_text('{"children.follow": false}')
    try:
        session, status = await same_as_plain(strobe, "exec", "2")
        assert "leaf_work" not in await calls(strobe, session) and "processes" not in status
    finally:
        settings.unlink()


async def test_exits_are_told(strobe: Strobe) -> None:
    """Where the kernel tells (Linux 6.15)."""
    session = await strobe.launch(children(), "shell", root=TARGETS)
    status = await strobe.until_ended(session)
    exits = Counter(one.get("exit") for one in status["processes"])
    if tuple(int(part) for part in os.uname().release.split(".")[:2]) < (6, 15):
        pytest.skip("the kernel does not tell how the children of others ended")
    assert exits == {"with code 4": 3, "with code 14": 2}


