"""The supervisor's parts without a node: lock, table, recovery, idle clock, old logs; and the log files of actors."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from strobe.runtime.log import RotatingFile, log_name, open_log
from strobe.supervisor.idle import IdleClock
from strobe.supervisor.lock import NodeLock
from strobe.supervisor.old_logs import FILES_MAX, prune_logs
from strobe.supervisor.process import Process, State, start_ticks
from strobe.supervisor.recovery import recovered
from strobe.supervisor.scratch import sweep
from strobe.supervisor.table import CLIENTS_MAX, Table
from strobe.supervisor.topology import ROLES, Role, topology

STORE = Role("store")


def test_one_holder_at_a_time_and_its_pid_is_told(tmp_path: Path) -> None:
    first, second = NodeLock(tmp_path), NodeLock(tmp_path)
    assert not second.is_held()
    assert first.take()
    assert second.is_held() and not second.take()
    assert second.holder() == os.getpid()
    first.close()
    assert not second.is_held() and second.take()
    (tmp_path / "lock").write_text("1\n")
    assert second.holder() is None, "a pid that does not hold the file was believed"
    second.close()


def test_lock_goes_with_its_process_however_it_ends(tmp_path: Path) -> None:
    code = f"from pathlib import Path; from strobe.supervisor.lock import NodeLock; print(NodeLock(Path({str(tmp_path)!r})).take(), flush=True); input()"
    holder = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None and holder.stdout.readline() == "True\n"
    mine = NodeLock(tmp_path)
    assert mine.is_held() and mine.holder() == holder.pid
    holder.kill()
    holder.communicate()
    assert mine.take()
    mine.close()


def test_removed_lock_file_is_noticed(tmp_path: Path) -> None:
    lock = NodeLock(tmp_path)
    assert lock.take() and not lock.is_lost()
    lock.path.unlink()
    assert lock.is_lost()
    other = NodeLock(tmp_path)
    assert lock.is_lost() and other.take()
    lock.close()
    other.close()


def running(name: str = "store", role: Role = STORE, **facts: Any) -> Process:
    return Process(name, role, identity=f"{name}~1", generation=1, pid=os.getpid(), start_ticks=start_ticks(os.getpid()) or 0, state=State.READY, **facts)


def test_only_the_living_generation_is_listened_to() -> None:
    table = Table()
    process = running()
    table.add(process)
    assert table.sender("store~1", os.getpid()) is process
    assert table.sender("store~1", os.getpid() + 1) is None
    assert table.sender("store~0", os.getpid()) is None


def test_renamed_process_is_found_by_its_new_name_and_old_identity() -> None:
    table = Table()
    process = running("session:warm-1")
    table.add(process)
    table.rename(process, "session:x")
    assert table.named("session:x") is process and table.named("session:warm-1") is None
    assert table.sender("session:warm-1~1", os.getpid()) is process


def test_clients_are_bounded_and_listeners_are_those_who_asked() -> None:
    table = Table()
    table.add(running(notices=frozenset({"n"})))
    for number in range(CLIENTS_MAX + 10):
        table.add_client(f"ctl:{number}", number, frozenset({"n"} if number == CLIENTS_MAX else ()))
    assert len(table.clients) == CLIENTS_MAX and "ctl:0" not in table.clients
    assert table.listeners("n") == ["store~1", f"ctl:{CLIENTS_MAX}"] and table.listeners("m") == []


def rows_of(tmp_path: Path, *processes: Process) -> list[dict[str, Any]]:
    """What a supervisor with these processes leaves behind."""
    table = Table()
    for process in processes:
        table.add(process)
    table.save(tmp_path / "actors.json")
    return Table.saved(tmp_path / "actors.json")


def test_saved_table_is_read_back_and_rubbish_is_none(tmp_path: Path) -> None:
    (row,) = rows_of(tmp_path, running(session_id="s"))
    assert (row["name"], row["pid"], row["sessionId"], row["generation"]) == ("store", os.getpid(), "s", 1)
    for text in ("", "{", "3", '{"a": 1}'):
        (tmp_path / "actors.json").write_text(text)
        assert Table.saved(tmp_path / "actors.json") == []
    assert Table.saved(tmp_path / "none.json") == []


def test_survivors_are_kept_and_generations_go_on(tmp_path: Path) -> None:
    (found,) = recovered(rows_of(tmp_path, running()), ROLES)
    assert (found.pid, found.identity, found.generation, found.state) == (os.getpid(), "store~1", 1, State.STARTING)
    assert found.pidfd is not None
    os.close(found.pidfd)


def test_what_nobody_needs_is_killed_and_the_others_are_kept(tmp_path: Path) -> None:
    roles = {role.name: role for role in ROLES}
    names = [("session:warm-1", "session", None), ("store", "store", None), ("gateway", "gateway", None), ("session:x", "session", "x")]
    children = [subprocess.Popen(["sleep", "60"]) for _ in names]
    try:
        rows = [
            Process(name, roles[role], session_id=session_id, generation=1, pid=child.pid, start_ticks=start_ticks(child.pid) or 0, leaving=name == "store")
            for (name, role, session_id), child in zip(names, children, strict=True)
        ]
        found = {process.name: process for process in recovered(rows_of(tmp_path, *rows), ROLES)}
        assert [child.wait(5) for child in children[:2]] == [-9, -9]
        assert set(found) == {"gateway", "session:x"}
        for name, child in zip(("gateway", "session:x"), children[2:], strict=True):
            assert child.poll() is None
            assert found[name].pid == child.pid and found[name].recovering and found[name].generation == 1
            os.close(found[name].pidfd or -1)
    finally:
        for child in children:
            child.kill()
            child.wait()


def test_reused_pid_is_not_taken_for_the_old_process(tmp_path: Path) -> None:
    (row,) = rows_of(tmp_path, running())
    (found,) = recovered([{**row, "startTicks": row["startTicks"] + 1}], ROLES)
    assert found.pid is None


def test_start_ticks_tell_processes_apart() -> None:
    child = subprocess.Popen(["true"])
    child.wait()
    assert start_ticks(child.pid) is None
    assert start_ticks(1) != start_ticks(os.getpid())


def test_idle_clock_runs_only_while_nobody_needs_the_node() -> None:
    clock = IdleClock(active_at=100.0)
    assert clock.idle_s(130.0, 0) == 30
    assert clock.idle_s(140.0, 1) == 0
    clock.counted(clients=1, calls=0, now=150.0)
    assert clock.idle_s(1000.0, 0) == 0
    clock.counted(clients=0, calls=0, now=1001.0)
    assert clock.idle_s(1011.0, 0) == 10
    clock.touch(1012.0)
    assert clock.idle_s(1013.0, 0) == 1


def test_old_session_logs_go_and_others_stay(tmp_path: Path) -> None:
    for number in range(FILES_MAX + 5):
        file = tmp_path / f"session-s{number}.jsonl"
        file.touch()
        os.utime(file, (number, number))
    (tmp_path / "store.jsonl").touch()
    os.utime(tmp_path / "store.jsonl", (0, 0))
    gone = prune_logs(tmp_path, keep={"session-s0"})
    assert [path.name for path in gone] == [f"session-s{number}.jsonl" for number in range(1, 5)]
    assert (tmp_path / "store.jsonl").exists() and (tmp_path / "session-s0.jsonl").exists()


def test_roles_can_be_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STROBE_ROLES", "store,indexer")
    assert [role.name for role in topology()] == ["indexer", "store"]
    monkeypatch.delenv("STROBE_ROLES")
    assert topology() == ROLES


def test_log_lines_are_json_private_and_rotate(tmp_path: Path) -> None:
    log, file = open_log(tmp_path / "x.jsonl", actor="a~1")
    log.info("event", number=3, odd={1: object()})
    try:
        raise ValueError("why")
    except ValueError:
        log.exception("failed")
    first, second = (json.loads(line) for line in (tmp_path / "x.jsonl").read_text().splitlines())
    assert (first["actor"], first["event"], first["number"], first["level"]) == ("a~1", "event", 3, "info")
    assert "ValueError: why" in second["exception"]
    assert (tmp_path / "x.jsonl").stat().st_mode & 0o777 == 0o600
    file.move_to(tmp_path / "y.jsonl")
    log.info("moved")
    assert len((tmp_path / "y.jsonl").read_text().splitlines()) == 3 and not (tmp_path / "x.jsonl").exists()
    file.move_to(tmp_path / "y.jsonl")
    assert len((tmp_path / "y.jsonl").read_text().splitlines()) == 3, "moving a log to its own name lost it"


def test_rotation_keeps_the_newest_and_bounds_the_rest(tmp_path: Path) -> None:
    file = RotatingFile(tmp_path / "r.jsonl", bytes_max=100, files_max=3)
    for number in range(50):
        file.write(b"%04d %s\n" % (number, b"x" * 34))
    sizes = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    assert set(sizes) == {"r.jsonl", "r.jsonl.1", "r.jsonl.2"} and all(size <= 100 for size in sizes.values())
    newest_first = "".join((tmp_path / name).read_text() for name in ("r.jsonl.2", "r.jsonl.1", "r.jsonl"))
    assert [int(line[:4]) for line in newest_first.splitlines()] == list(range(50 - len(newest_first.splitlines()), 50))


def test_full_disk_loses_lines_and_counts_them() -> None:
    file = RotatingFile(Path("/dev/full"))
    file.write(b"line\n")
    assert file.lost == 1


def test_log_names_are_file_names() -> None:
    assert log_name("session:hello-1") == "session-hello-1"


def test_sweep_ends_programs_left_in_a_folder_and_removes_it(tmp_path: Path) -> None:
    folder = tmp_path / "scratch"
    folder.mkdir()
    program = folder / "helper"
    shutil.copy(shutil.which("sleep") or "/bin/sleep", program)
    left = subprocess.Popen([str(program), "60"], start_new_session=True)
    other = subprocess.Popen(["sleep", "60"])
    try:
        assert sweep(folder) >= 1
        assert left.wait(5) == -9
        assert not folder.exists() and other.poll() is None
        assert sweep(folder) == 0, "sweeping twice does no harm"
    finally:
        other.kill()
        other.wait()
