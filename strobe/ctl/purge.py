"""`purge`: deletes ended sessions and says what that freed."""

from __future__ import annotations

import re
import time
from typing import Annotated, Final

import typer

from strobe.client import Client
from strobe.ctl.output import AsJson, age, command, show_json, show_table
from strobe.errors import Code, StrobeError
from strobe.protocol.upkeep import Purge, PurgeReply
from strobe.render.values import byte_count

PURGE_S: Final = 300.0
_UNITS: Final = {"s": 1, "m": 60, "min": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_AGE: Final = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)\s*(s|min|m|h|d|w)")


@command
async def purge(
    sessions: Annotated[list[str] | None, typer.Argument(help="Ids of ended sessions, see `strobe-ctl sessions`.")] = None,
    older_than: Annotated[str | None, typer.Option(help="All that ended longer ago: 90s, 30min, 12h, 3d, 2w.")] = None,
    retained: Annotated[bool, typer.Option("--retained", help="Only those that were stopped with retain.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would go; delete nothing.")] = False,
    as_json: AsJson = False,
) -> int:
    """Delete ended sessions, and say what that frees. One that runs is never deleted; status 1 when such a one was named."""
    ask = Purge(session_ids=sessions or [], older_than_s=None if older_than is None else seconds(older_than), retained=retained, dry_run=dry_run)
    async with Client(start=True) as client:
        reply: PurgeReply = await client.ask("store", ask, deadline_s=PURGE_S)
    if as_json:
        show_json({**reply.model_dump(by_alias=True), "dryRun": dry_run})
        return int(bool(reply.kept))
    now = time.time()
    rows = [(one.session_id, one.state, f"{age(max(0.0, now - one.ended_at / 1e9))} ago", byte_count(one.bytes)) for one in reply.purged]
    show_table(("session", "state", "ended", "size"), rows, empty="Nothing to delete.")
    for one in reply.kept:
        print(f"Kept {one.session_id}: {one.reason}.")
    if rows:
        verb, left = ("Would free", "in use now") if dry_run else ("Freed", "left in use")
        print(f"{verb} {byte_count(reply.freed_bytes)}; {byte_count(reply.left_bytes)} {left}.")
    return int(bool(reply.kept))


def seconds(text: str) -> float:
    """`3d` → 259200.0. Raises StrobeError(VALIDATION_ERROR)."""
    found = _AGE.fullmatch(text.strip())
    if found is None:
        raise StrobeError(Code.VALIDATION_ERROR, f"{text[:40]!r} is no length of time.", "Examples: 90s, 30min, 12h, 3d, 2w.", value=text[:40])
    return float(found[1]) * _UNITS[found[2]]
