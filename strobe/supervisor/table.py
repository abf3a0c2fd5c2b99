"""The process table: who is called what, and who said so."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from strobe.supervisor.private import open_private
from strobe.supervisor.process import Process, State

CLIENTS_MAX: Final = 256


class Table:
    """Processes by name and by router identity, and the clients (strobe-ctl, tests) that said HELLO."""

    def __init__(self) -> None:
        self._by_name: dict[str, Process] = {}
        self.clients: dict[str, tuple[int, frozenset[str]]] = {}  # identity = name: (pid, notices)

    def __iter__(self) -> Iterator[Process]:
        return iter(list(self._by_name.values()))

    def add(self, process: Process) -> None:
        self._by_name[process.name] = process

    def remove(self, process: Process) -> None:
        self._by_name.pop(process.name, None)

    def rename(self, process: Process, name: str) -> None:
        self.remove(process)
        process.name = name
        self.add(process)

    def named(self, name: str) -> Process | None:
        return self._by_name.get(name)

    def sender(self, identity: str, pid: int | None) -> Process | None:
        """The living process that speaks as `identity`: same generation, same pid. None: a dead one's late frame, or an impostor's."""
        for process in self._by_name.values():
            if process.identity == identity and process.pid == pid:
                return process
        return None

    def add_client(self, identity: str, pid: int, notices: frozenset[str]) -> None:
        while len(self.clients) >= CLIENTS_MAX:
            self.clients.pop(next(iter(self.clients)))  # the oldest; it says HELLO again if it is still there
        self.clients[identity] = (pid, notices)

    def listeners(self, notice_type: str) -> list[str]:
        """Router identities that subscribed."""
        actors = [p.identity for p in self._by_name.values() if notice_type in p.notices and p.state in (State.READY, State.UNHEALTHY)]
        return actors + [identity for identity, (_, notices) in self.clients.items() if notice_type in notices]

    # What a successor needs

    def save(self, path: Path) -> None:
        """Who runs, atomically; read by the next supervisor if this one dies."""
        rows = [
            {
                "name": p.name, "role": p.role.name, "identity": p.identity, "sessionId": p.session_id, "generation": p.generation,
                "pid": p.pid, "startTicks": p.start_ticks, "leaving": p.leaving,
            }
            for p in self._by_name.values()
        ]
        new = path.with_suffix(".new")
        with open_private(new, append=False) as file:
            file.write(json.dumps(rows).encode())
        new.replace(path)

    @staticmethod
    def saved(path: Path) -> list[dict[str, Any]]:
        """Rows of a table left by a dead supervisor; none after an orderly end, or where the file is no such table."""
        try:
            rows = json.loads(path.read_text())
        except (FileNotFoundError, ValueError):
            return []
        return [row for row in rows if isinstance(row, dict) and "name" in row] if isinstance(rows, list) else []
