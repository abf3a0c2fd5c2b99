"""Makes a bundle. Everything that is put in as text is redacted on its way, and what was redacted is counted."""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from strobe.errors import Code, StrobeError
from strobe.evidence.manifest import MANIFEST, MEMBERS_MAX, Manifest, Member, name_problem
from strobe.redaction import TEXT_MAX, Redactor

CHUNK: Final = 1 << 20
REDACTION: Final = "redaction.json"
_TIME: Final = (1980, 1, 1, 0, 0, 0)  # the manifest says when: the same content is the same file


class BundleWriter:
    """A private file beside `path`, which becomes `path` when it is finished. Context manager: without `finish` nothing is left."""

    def __init__(self, path: Path, redactor: Redactor | None) -> None:
        self._path, self._part = path, path.with_name(f".{path.name}.{os.getpid()}.part")
        self._redactor = redactor
        self._members: list[Member] = []
        self.redacted: dict[str, int] = {}
        self.left_out: list[str] = []

    def __enter__(self) -> BundleWriter:
        try:
            file = os.open(self._part, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError as error:
            what = f"The bundle {self._path} cannot be made: {error.strerror}."
            raise StrobeError(Code.VALIDATION_ERROR, what, "Choose a folder that exists and that you may write to.", value=str(self._path)) from None
        self._zip = zipfile.ZipFile(os.fdopen(file, "w+b"), "w", zipfile.ZIP_DEFLATED)
        return self

    def __exit__(self, *_: object) -> None:
        if self._zip.fp is not None:
            stream = self._zip.fp
            self._zip.close()
            stream.close()
        self._part.unlink(missing_ok=True)

    def text(self, name: str, text: str) -> None:
        if self._redactor is not None:
            before = self._redactor.found
            text = "".join(self._redactor.text(piece) for piece in _pieces(text))
            self.count(name, self._redactor.found - before)
        self._add(name, text.encode("utf-8", "backslashreplace"))

    def json(self, name: str, value: Any) -> None:
        if self._redactor is not None:
            before = self._redactor.found
            value = self._redactor.value(value)
            self.count(name, self._redactor.found - before)
        self._add(name, json.dumps(value, ensure_ascii=True, indent=1).encode())

    def file(self, name: str, path: Path) -> None:
        """As it is: redacted before, where it can hold secrets."""
        digest, size = hashlib.sha256(), 0
        with path.open("rb") as stream, self._zip.open(_info(name), "w") as member:
            while block := stream.read(CHUNK):
                member.write(block)
                digest.update(block)
                size += len(block)
        self._register(name, size, digest.hexdigest())

    def count(self, name: str, redacted: int) -> None:
        if redacted:
            self.redacted[name] = self.redacted.get(name, 0) + redacted

    def finish(self, facts: dict[str, Any]) -> str:
        """`facts`: the manifest's other fields. Answers the SHA-256 of the manifest, which stands for the whole bundle."""
        report = {"enabled": self._redactor is not None, "redacted": sum(self.redacted.values()), "byMember": self.redacted}
        self._add(REDACTION, json.dumps(report, indent=1).encode())
        manifest = Manifest(**facts, left_out=self.left_out, members=self._members)
        content = json.dumps(manifest.model_dump(by_alias=True, mode="json"), ensure_ascii=True, indent=1).encode()
        self._zip.writestr(_info(MANIFEST), content, zipfile.ZIP_DEFLATED)
        stream = self._zip.fp
        self._zip.close()
        assert stream is not None  # it was open until now
        stream.flush()
        os.fsync(stream.fileno())
        stream.close()
        self._part.replace(self._path)
        return hashlib.sha256(content).hexdigest()

    def _add(self, name: str, content: bytes) -> None:
        self._zip.writestr(_info(name), content, zipfile.ZIP_DEFLATED)
        self._register(name, len(content), hashlib.sha256(content).hexdigest())

    def _register(self, name: str, size: int, digest: str) -> None:
        if (problem := name_problem(name)) is not None or len(self._members) >= MEMBERS_MAX:
            raise ValueError(f"{name!r}: {problem or 'too many members'}")
        self._members.append(Member(path=name, bytes=size, sha256=digest))


def _pieces(text: str) -> Iterator[str]:
    """Whole lines, as many as the redactor looks at in one text."""
    at = 0
    while at < len(text):
        end = len(text) if len(text) - at <= TEXT_MAX else max(text.rfind("\n", at, at + TEXT_MAX) + 1, 0) or at + TEXT_MAX
        end = max(end, at + 1)
        yield text[at:end]
        at = end


def _info(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, _TIME)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = 0o100600 << 16
    return info
