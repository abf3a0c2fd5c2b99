"""What SECURITY.md promises, against a whole node with a running session."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from strobe import paths
from strobe.client import Client
from strobe.errors import Code, StrobeError
from strobe.protocol.store import CreateSession, DeleteSession, RunSql
from strobe.protocol.supervisor import OpenSession
from strobe.protocol.upkeep import CopySession
from strobe.supervisor.start import ensure_node
from tests.harness.node import all_ready, assert_nothing_left, environment, processes_of, run, status, stop
from tests.harness.shim import dealer

SECRET = "ghp_" + "s3cr3tT0kenOfNobodyAtAll" * 2
NOBODY = 65534
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user to be refused")
# argv: folder, uid. Prints how many messages the gateway answered with.
STRANGER = """
import os, sys, json, zmq
os.chdir(sys.argv[1])
os.setuid(int(sys.argv[2]))
context = zmq.Context()
answered = []
for name in ("mcp", "bus", "data"):
    socket = context.socket(zmq.DEALER)
    socket.linger = 0
    socket.connect(f"ipc://{name}")
    facts = {"version": "0", "client": "stranger", "pid": os.getpid(), "cwd": "/", "env": {}}
    socket.send_multipart([b"hello", json.dumps(facts).encode()] if name == "mcp" else [b"", b"x"])
    if socket.poll(20_000 if name == "mcp" and sys.argv[2] == "0" else 1000):
        answered.append(name)
    socket.close()
print(",".join(answered))
"""


class Place:
    def __init__(self, home: Path) -> None:
        self.home = home
        self.session = ""

    async def launch(self) -> None:
        async with Client() as client:
            await all_ready(client, within_s=60)
        async with dealer(self.home) as shim:
            await shim.hello()
            await shim.initialize()
            script = "read x; echo told $1 $TOKEN $x; exec sleep 1000"
            reply = await shim.call(
                2, "debug_launch", command="/bin/sh", args=["-c", script, "sh", SECRET], env={"TOKEN": SECRET}, stdin=SECRET + "\n", projectRoot="/tmp"
            )
            assert not reply["result"].get("isError"), reply
            self.session = reply["result"]["structuredContent"]["sessionId"]
            for number, asked in enumerate((SECRET, "[" + SECRET), 3):  # one that is answered, one that is refused
                await shim.call(number, "debug_query", sessionId=self.session, function={"matches": asked})

    async def end(self) -> None:
        async with dealer(self.home) as shim:
            await shim.hello()
            await shim.initialize()
            await shim.call(2, "debug_session", action="stop", sessionId=self.session, kill=True)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    made = Place(tmp_path_factory.mktemp("safety"))
    with environment(made.home, None, {}):
        ensure_node()
        try:
            run(made.launch())
            yield made
            run(made.end())
        finally:
            run(stop(made.home))
        assert_nothing_left(made.home)


def test_no_process_of_a_node_has_an_internet_socket(place: Place) -> None:
    pids = [int(line.split()[0]) for line in processes_of(place.home)]
    assert len(pids) >= 6, "supervisor, actors, keeper"
    seen = 0
    for pid in pids:
        held = {target for entry in Path(f"/proc/{pid}/fd").iterdir() if (target := _link(entry)).startswith("socket:[")}
        seen += len(held)
        for table in ("tcp", "tcp6", "udp", "udp6", "udplite", "raw", "raw6", "packet"):
            rows = Path(f"/proc/{pid}/net/{table}")
            if rows.exists():
                inodes = {f"socket:[{field}]" for line in rows.read_text().splitlines()[1:] for field in line.split()}
                assert not held & inodes, f"{pid} has a socket in {table}"
    assert seen, "none of them has any socket at all?"


def _link(entry: Path) -> str:
    try:
        return str(entry.readlink())
    except OSError:
        return ""


def stranger(folder: Path, uid: int) -> str:
    return subprocess.run([sys.executable, "-c", STRANGER, str(folder), str(uid)], capture_output=True, text=True, timeout=60, check=True).stdout.strip()


@needs_root
def test_other_users_are_refused_even_where_modes_would_let_them(place: Place) -> None:
    folder = paths.run_folder()
    before = {path: path.stat().st_mode & 0o777 for path in (place.home, folder, *(folder / name for name in ("mcp", "bus", "data")))}
    assert {oct(mode) for path, mode in before.items() if path.is_socket()} == {"0o600"}
    try:
        for path in before:
            path.chmod(0o777)
        assert stranger(folder, NOBODY) == ""
        assert stranger(folder, 0) == "mcp", "its own user is answered in the same way"
    finally:
        for path, mode in before.items():
            path.chmod(mode)


def test_every_folder_and_file_of_a_home_is_private(place: Place) -> None:
    for folder in (place.home, *(entry for entry in place.home.iterdir() if entry.is_dir())):
        assert folder.stat().st_mode & 0o077 == 0, folder


def test_logs_hold_no_secrets(place: Place) -> None:
    files = [file for file in (place.home / "logs").rglob("*") if file.is_file()]
    assert any("session" in file.name for file in files) and any("gateway" in file.name for file in files)
    for file in files:
        assert SECRET.encode() not in file.read_bytes(), file


def test_what_holds_output_leaves_no_core_file(place: Place) -> None:
    async def pids() -> dict[str, int]:
        async with Client() as client:
            return {row.name: row.pid for row in (await status(client)).actors if row.pid}

    running = run(pids())
    for name in ("store", "gateway", "indexer"):
        line = next(line for line in Path(f"/proc/{running[name]}/limits").read_text().splitlines() if line.startswith("Max core file size"))
        assert line.split()[4] in ("0", "1"), (name, line)


@pytest.mark.parametrize("name", ["../escaped", "..", "a/b", "/etc/passwd", "x\0y", "", "x" * 300, "~root", "a b"])
def test_names_cannot_leave_their_folder(place: Place, name: str) -> None:
    async def story() -> None:
        async with Client() as client:
            for ask, to in ((DeleteSession(session_id=name), "store"), (CopySession(session_id=name, form="duckdb", path="/x"), "store")):
                with pytest.raises(StrobeError) as refused:
                    await client.ask(to, ask)
                assert refused.value.code in (Code.SESSION_NOT_FOUND, Code.VALIDATION_ERROR)
            with pytest.raises(StrobeError) as refused:
                await client.ask("supervisor", OpenSession(session_id=name))
            assert refused.value.code is Code.VALIDATION_ERROR

    for function in (paths.target_folder, paths.pool_path):
        with pytest.raises(StrobeError):
            function(name)
    run(story())


@pytest.mark.parametrize("binary", ["/bin/../../x", "/bin/..", "/bin/a b\nc", "/bin/\u202e\u0000", "/", ""])
def test_session_ids_made_of_programs_names_are_plain(place: Place, binary: str) -> None:
    async def story() -> None:
        async with Client() as client:
            ask = CreateSession(
                client_id="odd", binary_path=binary, command=[binary], cwd="/", project_root="/", started_at=1_700_000_000_000_000_000, started_monotonic_ns=1
            )
            session_id = (await client.ask("store", ask)).session_id
            assert paths.safe_name(session_id) == session_id
            await client.ask("store", DeleteSession(session_id=session_id))

    run(story())


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM read_csv('https://example.org/x.csv')",
        "COPY (SELECT 1) TO '{home}/out.csv'",
        "ATTACH '{home}/catalog.duckdb'",
        "INSTALL httpfs",
        "SELECT * FROM glob('/*')",
        "SELECT getenv('HOME')",
        "SET enable_external_access = true",
        "SELECT 1; DROP TABLE raw_calls",
        "EXPLAIN ANALYZE COPY (SELECT 1) TO '{home}/out.csv'",
        "WITH x AS (SELECT * FROM read_blob('{home}/settings.json')) SELECT * FROM x",
        "EXPORT DATABASE '{home}/out'",
        "SELECT * FROM query('SELECT * FROM read_text(''/etc/passwd'')')",
    ],
)
def test_sql_reaches_no_file_and_no_network(place: Place, sql: str) -> None:
    before = sorted(file.name for file in place.home.iterdir())

    async def story() -> Any:
        async with Client() as client:
            return await client.ask("store", RunSql(session_id=place.session, sql=sql.replace("{home}", str(place.home))))

    with pytest.raises(StrobeError) as refused:
        run(story())
    assert refused.value.code is Code.VALIDATION_ERROR and "root:" not in json.dumps(refused.value.to_wire())
    assert sorted(file.name for file in place.home.iterdir()) == before
