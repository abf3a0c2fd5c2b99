"""One kind of plans of one file, in memory and on disk: packed one by one, so that keeping them again costs only what is new."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cache as cache_once
from functools import cached_property
from pathlib import Path
from typing import Final

import msgpack  # type: ignore[import-untyped]

from actors.indexer import cache
from actors.indexer.elf import ElfFile
from strobe import values
from strobe.model.probe import Plan

PLANS: Final = "plans"
SHELF_BYTES_MAX: Final = 128 << 20


@cache_once
def _code_digest() -> str:
    """Plans made by other code are made anew."""
    own, shared = Path(__file__).parent, Path(values.__path__[0])
    digest = hashlib.sha256()
    for path in sorted([*own.glob("*.py"), *own.glob("dwarf/*.py"), *shared.rglob("*.py"), *shared.rglob("*.toml")]):
        digest.update(path.read_bytes())
    return digest.hexdigest()


class PlanShelf:
    """`digest`: of the project's own formatters."""

    def __init__(self, folder: Path, files: tuple[ElfFile, ElfFile | None], depth: int, digest: str) -> None:
        kind = "" if depth == 0 else f"-{depth}-{digest[:12]}" if digest else f"-{depth}"
        self._path = folder / f"{PLANS}{kind}"
        self._stamp = cache.stamp_of(*files, extra=f"plans {depth} {digest} {_code_digest()}")
        self._unpacked: dict[int, Plan] = {}

    def get(self, address: int) -> Plan | None:
        if address not in self._unpacked and address in self._kept[0]:
            self._unpacked[address] = Plan.model_validate(msgpack.unpackb(self._kept[0][address]))
        return self._unpacked.get(address)

    def put(self, address: int, plan: Plan) -> None:
        self._unpacked[address] = plan
        self._kept[0][address] = msgpack.packb(plan.model_dump())

    def add_bundles(self, bundles: dict[str, bytes]) -> None:
        self._kept[1].update(bundles)

    def bundles_of(self, plans: Iterable[Plan]) -> dict[str, bytes]:
        keys = {plan.types for plan in plans if plan.types is not None}
        return {key: self._kept[1][key] for key in keys}

    def save(self, problems: dict[int, str]) -> None:
        plans, bundles = self._kept
        if sum(map(len, plans.values())) + sum(map(len, bundles.values())) > SHELF_BYTES_MAX:
            return
        try:
            cache.write(self._path, self._stamp, msgpack.packb([plans, bundles]))
        except OSError as error:
            problems[0] = f"plans cannot be cached: {error}"

    @cached_property
    def _kept(self) -> tuple[dict[int, bytes], dict[str, bytes]]:
        """Packed plans by address, bundles by key."""
        body = cache.read(self._path, self._stamp)
        if body is None:
            return {}, {}
        plans, bundles = msgpack.unpackb(body, strict_map_key=False)
        return plans, bundles
