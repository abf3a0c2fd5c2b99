"""A session as a file of its own, of one moment, whether it records or not."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import duckdb
import pyarrow as pa  # type: ignore[import-untyped]  # ships no types

from actors.store.instance import open_instance
from actors.store.session_file import SessionFile
from strobe.errors import Code, StrobeError
from strobe.protocol.upkeep import CopyReply

ROWS_A_PART: Final = 65_536
_EVENTS: Final = "SELECT * FROM events_v WHERE n <= {last} ORDER BY ts, n"


def copy_file(file: SessionFile, connection: duckdb.DuckDBPyConnection, path: Path) -> CopyReply:
    """The file as it is, what is in its log written into it. Commits wait while it is copied."""
    del connection
    with _new(path):
        events = file.copy_to(path)
        open_instance(path).close()  # what is in the copied log goes into the copy
        path.chmod(0o600)
        return CopyReply(path=str(path), bytes=path.stat().st_size, events=events)


def copy_events(file: SessionFile, connection: duckdb.DuckDBPyConnection, path: Path) -> CopyReply:
    """One row an event, in time order."""
    import pyarrow.parquet as parquet  # type: ignore[import-untyped]  # here: it takes a second to load, which no store's start should wait for

    last = file.counts.snapshot().last_n
    with _new(path):
        reader: pa.RecordBatchReader = connection.execute(_EVENTS.format(last=last)).to_arrow_reader(ROWS_A_PART)
        events = 0
        with path.open("wb") as output, parquet.ParquetWriter(output, reader.schema, compression="zstd") as writer:
            for part in reader:
                writer.write_batch(part)
                events += part.num_rows
        return CopyReply(path=str(path), bytes=path.stat().st_size, events=events)


Copying = Callable[[SessionFile, duckdb.DuckDBPyConnection, Path], CopyReply]
FORMS: Final[dict[str, Copying]] = {"duckdb": copy_file, "parquet": copy_events}


@contextmanager
def _new(path: Path) -> Iterator[None]:
    """A private file that was not there; gone again when its making fails."""
    if not path.is_absolute():
        raise StrobeError(Code.VALIDATION_ERROR, f"{path} is not an absolute path.", "Give one.", value=str(path))
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
    except OSError as error:
        next_step = "Remove it, or choose another name." if isinstance(error, FileExistsError) else "Choose a folder that you may write to."
        raise StrobeError(Code.VALIDATION_ERROR, f"{path} cannot be made: {error.strerror}.", next_step, value=str(path)) from None
    try:
        yield
    except BaseException:
        for part in (path, path.with_name(path.name + ".wal")):
            part.unlink(missing_ok=True)
        raise
