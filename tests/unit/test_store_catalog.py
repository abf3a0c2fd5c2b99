"""The catalog, session ids, retention, and what is rebuilt when the catalog's file is damaged."""

from __future__ import annotations

import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from actors.store.catalog import Catalog
from actors.store.retention import DAY_NS, expired
from actors.store.session_file import SessionFile
from actors.store.session_id import new_session_id
from strobe.errors import Code, StrobeError
from strobe.model.pending import PendingChange
from strobe.model.session import SessionState
from strobe.protocol.store import CreateSession
from tests.bench.store_records import record


def ask(**changes: Any) -> CreateSession:
    facts: dict[str, Any] = {"client_id": "c", "binary_path": "/bin/demo", "command": ["demo"], "cwd": "/", "project_root": "/"}
    facts |= {"started_at": time.time_ns(), "started_monotonic_ns": 1}
    return CreateSession(**{**facts, **changes})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sessions").mkdir()
    return tmp_path


def opened(folder: Path) -> Catalog:
    return Catalog(folder / "catalog.duckdb", folder / "sessions")


def test_ids_name_binary_and_minute_and_never_collide() -> None:
    at = int(datetime(2026, 3, 4, 5, 6, 7).timestamp() * 1e9)
    taken = {"demo-2026-03-04-05h06", "demo-2026-03-04-05h06-2"}
    assert new_session_id("/usr/bin/demo", at, taken.__contains__) == "demo-2026-03-04-05h06-3"
    assert new_session_id("/x/a b/ü !", at, lambda _: False) == "_-2026-03-04-05h06"
    assert new_session_id("/..", at, lambda _: False) == "program-2026-03-04-05h06"
    assert len(new_session_id("/" + "x" * 500, at, lambda _: False)) < 140


def test_one_live_session_per_client_and_binary(folder: Path) -> None:
    catalog = opened(folder)
    first = catalog.create(ask())
    with pytest.raises(StrobeError) as refused:
        catalog.create(ask())
    assert refused.value.code is Code.SESSION_EXISTS and refused.value.value == first.session_id
    assert catalog.create(ask(client_id="d")).session_id != first.session_id
    catalog.put(first.model_copy(update={"state": SessionState.EXITED}))
    assert catalog.create(ask()).session_id != first.session_id
    catalog.close()


def pending(catalog: Catalog, client: str, add: list[str], remove: list[str], *, take: bool) -> list[str]:
    return catalog.change_pending(client, PendingChange(add=add, remove=remove), take).patterns


def test_pending_patterns_keep_their_order_and_outlive_the_process(folder: Path) -> None:
    catalog = opened(folder)
    assert pending(catalog, "c", ["b", "a", "b"], [], take=False) == ["b", "a"]
    assert pending(catalog, "c", ["x", "b"], ["b"], take=False) == ["a", "x", "b"]
    assert pending(catalog, "d", ["y"], [], take=False) == ["y"]
    catalog.close()
    again = opened(folder)
    assert pending(again, "c", [], [], take=False) == ["a", "x", "b"]
    assert pending(again, "c", ["a"], ["x"], take=True) == ["a", "b"]
    again.close()
    empty = opened(folder)
    assert pending(empty, "c", [], [], take=True) == []
    assert pending(empty, "d", [], [], take=False) == ["y"]
    empty.close()


def test_an_unknown_session_is_told_with_the_latest(folder: Path) -> None:
    catalog = opened(folder)
    made = catalog.create(ask())
    with pytest.raises(StrobeError) as refused:
        catalog.get("nosuch")
    assert refused.value.code is Code.SESSION_NOT_FOUND and made.session_id in refused.value.next_step
    catalog.close()


def test_a_damaged_catalog_is_set_aside_and_rebuilt_from_the_files(folder: Path) -> None:
    catalog = opened(folder)
    made = [catalog.create(ask(binary_path=f"/bin/demo{number}")) for number in range(3)]
    for one in made:
        SessionFile(folder / "sessions" / f"{one.session_id}.duckdb", one).close()
    catalog.close()
    (folder / "sessions" / "broken.duckdb").write_bytes(b"x" * 9000)
    (folder / "catalog.duckdb").write_bytes(b"nonsense" * 2000)
    catalog = opened(folder)
    assert {one.session_id: one for one in catalog.sessions()} == {one.session_id: one for one in made}
    assert catalog.set_aside is not None and catalog.set_aside.exists()
    assert catalog.unreadable == [folder / "sessions" / "broken.duckdb"]
    catalog.close()


def test_retention_takes_the_old_then_the_oldest_retained_and_never_the_living() -> None:
    now = 100 * DAY_NS

    def ended(name: str, days_ago: float, *, retained: bool = True, state: SessionState = SessionState.EXITED) -> Any:
        return record(name, state=state, ended_at=int(now - days_ago * DAY_NS), retained=retained)

    records = [ended("old", 8), ended("a", 3), ended("b", 2), ended("kept", 2.5, retained=False), ended("live", 50, state=SessionState.RUNNING)]
    sizes = dict.fromkeys(("old", "a", "b", "kept", "live"), 100)
    assert expired(records, sizes, now, 7, 10_000) == ["old"]
    assert expired(records, sizes, now, 7, 300) == ["old", "a"]
    assert expired(records, sizes, now, 7, 0) == ["old", "a", "b"]
    assert expired(records, {}, now, 365, 10) == []
