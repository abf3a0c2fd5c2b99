"""The store's ingest side alone, as a process that a test can kill: `python -m tests.actor.store_victim` with STROBE_HOME set."""

from __future__ import annotations

import os

import structlog

from actors.store.catalog import Catalog
from actors.store.files import Files
from actors.store.in_hand import InHand
from actors.store.ingest import Ingest
from strobe import paths
from strobe.model.session import SessionRecord


class Deaf:
    def record_changed(self, record: SessionRecord) -> None:
        del record

    def heard_of(self, session_id: str) -> None:
        del session_id

    def starved(self) -> None:
        raise AssertionError("no query runs here")


def main() -> None:
    catalog = Catalog(paths.home() / "catalog.duckdb", paths.sessions_folder())
    in_hand = InHand(paths.home() / "in-hand", fell="STROBE_FELL" in os.environ)
    Ingest(paths.data_endpoint(), Files(paths.sessions_folder(), catalog), in_hand, Deaf(), structlog.get_logger()).run()


if __name__ == "__main__":
    main()
