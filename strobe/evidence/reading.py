"""Checks a bundle and reads it. The file may come from anybody: nothing is believed before it was checked, nothing is written where it says.

Refused: what is no zip file or cut short; names that leave their folder, links, members twice or encrypted; more than is declared or than may be; a member
whose bytes are not those that the manifest says, one that it does not name, one that it names and is missing.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

from pydantic import ValidationError

from strobe.errors import Code, StrobeError
from strobe.evidence.manifest import FORMAT, MANIFEST, MEMBERS_MAX, Manifest, Member, name_problem
from strobe.render.values import byte_count

MANIFEST_BYTES_MAX: Final = 8 << 20
BYTES_MAX: Final = 8 << 30  # of all members, unpacked
CHUNK: Final = 1 << 20
_ENCRYPTED: Final = 1
_METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


class Refused(StrobeError):
    """The file is not what it should be."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(Code.VALIDATION_ERROR, f"{path} is refused: {why}.", "Do not trust it; get it again from where it was made.", value=str(path))


class Bundle:
    """A bundle that was verified when this was made. Context manager."""

    def __init__(self, path: Path, digest: str | None = None) -> None:
        """`digest`: SHA-256 of the manifest, as strobe-ci told it. Raises Refused; VALIDATION_ERROR when there is no such file."""
        self.path = path
        try:
            self._zip = zipfile.ZipFile(path)
        except (OSError, IsADirectoryError) as error:
            what = f"{path} cannot be opened: {error.strerror or error}."
            raise StrobeError(Code.VALIDATION_ERROR, what, "Give the path of a bundle that strobe-ci --evidence made.", value=str(path)) from None
        except (zipfile.BadZipFile, ValueError, NotImplementedError, EOFError) as error:
            raise Refused(path, f"it is no whole zip file ({error})") from None
        try:
            self._infos = self._check_directory()
            self.manifest, self.digest = self._read_manifest()
            if digest is not None and digest.lower() != self.digest:
                raise Refused(path, f"its manifest has the SHA-256 {self.digest}, not {digest}")
            self._check_members()
        except BaseException:
            self._zip.close()
            raise

    def __enter__(self) -> Bundle:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    def names(self) -> list[str]:
        return [member.path for member in self.manifest.members]

    def read(self, name: str, limit: int = 64 << 20) -> bytes:
        """Raises VALIDATION_ERROR: there is no such member, or it is larger."""
        member = self._member(name)
        if member.bytes > limit:
            what = f"{name} has {byte_count(member.bytes)}."
            raise StrobeError(Code.LIMIT_EXCEEDED, what, "Unpack it: strobe-ctl evidence open FILE --to FOLDER.", value=name)
        return b"".join(self._blocks(name, member.bytes))

    def unpack(self, folder: Path) -> int:
        """Every member below a new, private folder. Answers how many."""
        try:
            folder.mkdir(mode=0o700, parents=True)
        except OSError as error:
            what = f"{folder} cannot be made: {error.strerror}."
            raise StrobeError(Code.VALIDATION_ERROR, what, "Name a folder that is not there.", value=str(folder)) from None
        for member in [*self.manifest.members, Member(path=MANIFEST, bytes=self._infos[MANIFEST].file_size, sha256=self.digest)]:
            target = folder / member.path
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            with os.fdopen(file, "wb") as output:
                for block in self._blocks(member.path, member.bytes):
                    output.write(block)
        return len(self.manifest.members) + 1

    def _member(self, name: str) -> Member:
        found = next((member for member in self.manifest.members if member.path == name), None)
        if found is None:
            raise StrobeError(Code.VALIDATION_ERROR, f"The bundle has no member {name!r}.", "`strobe-ctl evidence open FILE` lists them.", value=name)
        return found

    def _check_directory(self) -> dict[str, zipfile.ZipInfo]:
        """By what the zip's directory declares, before a byte is unpacked."""
        infos = self._zip.infolist()
        if len(infos) > MEMBERS_MAX + 2:
            raise Refused(self.path, f"it has {len(infos):,} members, more than {MEMBERS_MAX:,}")
        found: dict[str, zipfile.ZipInfo] = {}
        for info in infos:
            shown = info.orig_filename[:100]
            problem = name_problem(info.orig_filename)
            if problem is None and info.filename != info.orig_filename:
                problem = "its name is not what it seems"
            if problem is None and stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG):  # 0: other systems tell none
                problem = "it is no ordinary file"
            if problem is None and (info.flag_bits & _ENCRYPTED or info.compress_type not in _METHODS):
                problem = "it is encrypted, or packed in an unusual way"
            if problem is None and info.filename in found:
                problem = "it is there twice"
            if problem is not None:
                raise Refused(self.path, f"member {shown!r}: {problem}")
            found[info.filename] = info
        total = sum(info.file_size for info in infos)
        if total > BYTES_MAX:
            raise Refused(self.path, f"it would unpack to {byte_count(total)}, more than {byte_count(BYTES_MAX)}")
        return found

    def _read_manifest(self) -> tuple[Manifest, str]:
        info = self._infos.get(MANIFEST)
        if info is None:
            raise Refused(self.path, f"it has no {MANIFEST}: no evidence bundle")
        if info.file_size > MANIFEST_BYTES_MAX:
            raise Refused(self.path, f"its manifest has {byte_count(info.file_size)}")
        content = b"".join(self._blocks(MANIFEST, info.file_size))
        try:
            plain = json.loads(content)
            if isinstance(plain, dict) and isinstance(plain.get("format"), int) and plain["format"] > FORMAT:
                what = f"{self.path} has format {plain['format']}; this version reads up to {FORMAT}."
                raise StrobeError(Code.VALIDATION_ERROR, what, "Use a later version of Strobe.", value=plain["format"])
            return Manifest.model_validate(plain), hashlib.sha256(content).hexdigest()
        except (ValueError, RecursionError, ValidationError) as error:
            raise Refused(self.path, f"its manifest is damaged ({str(error).splitlines()[0][:200]})") from None

    def _check_members(self) -> None:
        named = [member.path for member in self.manifest.members]
        if len(set(named)) != len(named):
            raise Refused(self.path, "its manifest names a member twice")
        missing, foreign = sorted(set(named) - self._infos.keys()), sorted(self._infos.keys() - set(named) - {MANIFEST})
        if missing or foreign:
            why = f"the manifest names {missing[0]!r}, which is missing" if missing else f"the manifest does not name {foreign[0]!r}"
            raise Refused(self.path, why)
        for member in self.manifest.members:
            digest = hashlib.sha256()
            for block in self._blocks(member.path, member.bytes):
                digest.update(block)
            if digest.hexdigest() != member.sha256:
                raise Refused(self.path, f"member {member.path!r} was changed: its SHA-256 is {digest.hexdigest()}, the manifest says {member.sha256}")

    def _blocks(self, name: str, size: int) -> Iterator[bytes]:
        """Never more than `size` bytes are unpacked, whatever the file declares."""
        left = size
        try:
            with self._open(name) as stream:
                while block := stream.read(min(CHUNK, left + 1)):
                    left -= len(block)
                    if left < 0:
                        raise Refused(self.path, f"member {name!r} has more than the {size:,} bytes that it should")
                    yield block
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError, ValueError) as error:
            raise Refused(self.path, f"member {name!r} is damaged ({error})") from None
        if left:
            raise Refused(self.path, f"member {name!r} is {left:,} bytes short")

    def _open(self, name: str) -> IO[bytes]:
        return self._zip.open(self._infos[name])
