"""`export`: a session's timeline as JSON lines, or as a Parquet or DuckDB file. Nothing is redacted: it is the user's own."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TextIO, cast

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from strobe.client import Client
from strobe.ctl.data import SessionId
from strobe.ctl.output import AsJson, command, show_json
from strobe.errors import Code, StrobeError
from strobe.model.query import Query
from strobe.protocol.store import QueryReply, RunQuery
from strobe.protocol.upkeep import CopyReply, CopySession
from strobe.render.values import byte_count

PAGE_S: Final = 60.0
COPY_S: Final = 660.0
PAGE_EVENTS: Final = 500
FORMATS: Final = ("jsonl", "parquet", "duckdb")
EVICTED: Final = "evicted"


@command
async def export(
    session: SessionId,
    to: Annotated[Path | None, typer.Option(help="A new file (0600). Without it JSON lines go to stdout.")] = None,
    form: Annotated[str, typer.Option("--format", help="jsonl (every field), parquet (a row an event), duckdb (the whole session).")] = "jsonl",
    as_json: AsJson = False,
) -> None:
    """A session's whole timeline in time order, also while it records. Secrets are not redacted."""
    if form not in FORMATS:
        raise StrobeError(Code.VALIDATION_ERROR, f"There is no format {form!r}.", f"Use one of {', '.join(FORMATS)}.", value=form)
    if to is None and form != "jsonl":
        raise StrobeError(Code.VALIDATION_ERROR, f"{form} needs a file.", "Add --to FILE.", value=form)
    async with Client(start=True) as client:
        if form == "jsonl":
            told = await _lines(client, session, to)
        else:
            told = await _copy(client, session, cast(Literal["duckdb", "parquet"], form), cast(Path, to))
    if to is None:
        return
    if as_json:
        show_json(told)
    else:
        print(f"{told['events']:,} events, {byte_count(told['bytes'])}: {told['path']}")


async def _copy(client: Client, session: str, form: Literal["duckdb", "parquet"], to: Path) -> dict[str, Any]:
    path = str(to.absolute())
    with Console(stderr=True).status(f"copying {session}"):
        reply: CopyReply = await client.ask("store", CopySession(session_id=session, form=form, path=path), deadline_s=COPY_S)
    return reply.model_dump(by_alias=True)


async def _lines(client: Client, session: str, to: Path | None) -> dict[str, Any]:
    """Every event there was when it began. Raises LIMIT_EXCEEDED when some were evicted meanwhile: what was written is then not whole."""
    with _output(to) as output, _progress() as progress:
        task = progress.add_task(session, total=None)
        written, total, evicted = 0, 0, 0
        async for number, page in _pages(client, session):
            if number == 0:
                total, evicted = page.total_count, page.events_dropped.get(EVICTED, 0)
            for event in page.events:
                output.write(json.dumps(event, ensure_ascii=False, separators=(",", ":")) + "\n")
            written += len(page.events)
            progress.update(task, completed=written, total=total)
        output.flush()
        if written != total:
            gone = page.events_dropped.get(EVICTED, 0) - evicted
            what = f"{total - written:,} of {total:,} events are missing: {gone:,} were evicted while they were exported (events.maxPerSession)."
            raise StrobeError(Code.LIMIT_EXCEEDED, what, "Export with --format duckdb, which is of one moment, or when the session has ended.", value=session)
    return {"path": str(to and to.absolute()), "bytes": to.stat().st_size if to else 0, "events": written}


async def _pages(client: Client, session: str) -> AsyncIterator[tuple[int, QueryReply]]:
    cursor, number = None, 0
    while True:
        query = Query(verbose=True, limit=PAGE_EVENTS, cursor=cursor)
        page: QueryReply = await client.ask("store", RunQuery(session_id=session, query=query), deadline_s=PAGE_S)
        yield number, page
        cursor, number = page.cursor, number + 1
        if not page.has_more or cursor is None:
            return


@contextmanager
def _output(to: Path | None) -> Iterator[TextIO]:
    """stdout, or a new private file that goes again when it is not finished. Raises VALIDATION_ERROR."""
    if to is None:
        yield sys.stdout
        return
    try:
        file = os.open(to, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    except OSError as error:
        next_step = "Remove it, or choose another name." if isinstance(error, FileExistsError) else "Choose a folder that you may write to."
        raise StrobeError(Code.VALIDATION_ERROR, f"{to} cannot be made: {error.strerror}.", next_step, value=str(to)) from None
    try:
        with os.fdopen(file, "w", encoding="utf-8") as output:
            yield output
    except OSError as error:
        to.unlink(missing_ok=True)
        raise StrobeError(Code.LIMIT_EXCEEDED, f"{to} cannot be written: {error.strerror}.", f"Free space on {to.absolute().parent}.", value=str(to)) from None
    except BaseException:
        to.unlink(missing_ok=True)
        raise


def _progress() -> Progress:
    """On stderr, and only where that is a terminal."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
