"""`evidence verify` and `evidence open`: bundles that strobe-ci made, on any machine; no node is asked."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from strobe.ctl.output import AsJson, command, show_json, show_table
from strobe.errors import Code, StrobeError
from strobe.evidence.manifest import MANIFEST
from strobe.evidence.reading import Bundle
from strobe.render.events import event_lines
from strobe.render.plain import visible
from strobe.render.values import byte_count, count

File = Annotated[Path, typer.Argument(help="A bundle that strobe-ci --evidence made.")]
Digest = Annotated[str | None, typer.Option("--sha256", help="SHA-256 of the manifest, as strobe-ci told it: then nobody can have made another bundle.")]
TRACE_BYTES_MAX: Final = 1 << 30
evidence = typer.Typer(name="evidence", help="Check and read evidence bundles of strobe-ci.", no_args_is_help=True)


@evidence.command()
@command
async def verify(file: File, sha256: Digest = None, as_json: AsJson = False) -> None:
    """Is it whole, and as it was made? Exit status 1 when not, with the reason."""
    with Bundle(file, sha256) as bundle:
        size = sum(member.bytes for member in bundle.manifest.members)
        if as_json:
            show_json({"ok": True, "sha256": bundle.digest, "members": len(bundle.manifest.members), "bytes": size})
        else:
            print(f"Whole: {count(len(bundle.manifest.members), 'member')}, {byte_count(size)}, all as the manifest says. Its SHA-256 is {bundle.digest}.")


@evidence.command("open")
@command
async def open_bundle(
    file: File,
    member: Annotated[str | None, typer.Option(help="Show this one: a text, or a trace's events.")] = None,
    limit: Annotated[int, typer.Option(help="Events of a trace that are shown.", min=1, max=100_000)] = 50,
    to: Annotated[Path | None, typer.Option(help="Unpack all of it into this new folder.")] = None,
    sha256: Digest = None,
    as_json: AsJson = False,
) -> None:
    """What a bundle tells. It is verified first."""
    with Bundle(file, sha256) as bundle:
        if to is not None:
            print(f"{count(bundle.unpack(to), 'file')} in {to}.")
        elif member is not None:
            _member(bundle, member, limit, as_json=as_json)
        else:
            _whole(bundle, as_json=as_json)


def _member(bundle: Bundle, name: str, limit: int, *, as_json: bool) -> None:
    if name.endswith(".parquet"):
        _trace(bundle, name, limit, as_json=as_json)
        return
    content = bundle.manifest.model_dump_json(by_alias=True, indent=1).encode() if name == MANIFEST else bundle.read(name)
    if sys.stdout.isatty():
        print(visible(content.decode(errors="replace")))
    else:
        sys.stdout.buffer.write(content)


def _trace(bundle: Bundle, name: str, limit: int, *, as_json: bool) -> None:
    from strobe.evidence.traces import first_events  # loads pyarrow, half a second that no other command needs

    try:
        events, total = first_events(bundle.read(name, TRACE_BYTES_MAX), limit)
    except (ValueError, TypeError) as error:
        raise StrobeError(Code.VALIDATION_ERROR, f"{name} cannot be read: {error}.", "Verify where the bundle comes from.", value=name) from None
    if as_json:
        show_json(events)
        return
    for line in event_lines(events):
        print(visible(line))
    if total > len(events):
        print(f"{len(events):,} of {count(total, 'event')}; raise --limit.")


def _whole(bundle: Bundle, *, as_json: bool) -> None:
    manifest = bundle.manifest
    results = _results(bundle)
    if as_json:
        show_json({"sha256": bundle.digest, "manifest": manifest.model_dump(by_alias=True, mode="json"), "results": results})
        return
    commit = manifest.commit or {}
    changed = f", {commit['changedFiles']} files changed" if commit.get("changedFiles") else ""
    rows: list[tuple[str, Any]] = [
        ("made", f"{manifest.created_at}, strobe {manifest.strobe}, Python {manifest.python}, {manifest.platform}"),
        ("project", manifest.project),
        ("commit", f"{commit.get('id', 'not known')} {commit.get('branch', '')}{changed}"),
        ("command", " ".join(manifest.command)),
        ("framework", manifest.framework),
        ("result", _result(results)),
        ("programs", ", ".join(f"{name} {found}" for name, found in manifest.build_ids.items())),
        ("environment", f"{len(manifest.environment)} names"),
        ("left out", "; ".join(manifest.left_out)),
    ]
    show_table(("", ""), [(name, visible(str(text))) for name, text in rows if text], empty="")
    for failure in ((results.get("result") or {}).get("failures") or [])[:50]:
        if isinstance(failure, dict):
            print(visible(f"FAILED {failure.get('name')} ({failure.get('file')}:{failure.get('line')})\n  {failure.get('message')}"))
    print()
    show_table(("member", "size"), [(member.path, byte_count(member.bytes)) for member in manifest.members], empty="No members.")


def _results(bundle: Bundle) -> dict[str, Any]:
    try:
        found = json.loads(bundle.read("results.json"))
    except (ValueError, RecursionError) as error:
        raise StrobeError(Code.VALIDATION_ERROR, f"results.json is no JSON: {error}.", "Ask for a member: --member NAME.", value="results.json") from None
    return found if isinstance(found, dict) else {}


def _result(results: dict[str, Any]) -> str:
    result = results.get("result")
    if not isinstance(result, dict):
        return str(results.get("error") or "not run")
    return ", ".join(f"{result.get(name, 0)} {name}" for name in ("passed", "failed", "skipped", "stuck"))
