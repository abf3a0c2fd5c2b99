"""Secrets in replies (SPEC §10): what looks like one is shown as `<redacted>`, and the reply says so. Pure.

Known by form (keys of well-known services, JSON web tokens, private keys, passwords in URLs) or by name (`password=…`, an argument called
`apiKey`). What is stored stays as it is: redaction is of what is shown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from re import _constants as codes  # type: ignore[attr-defined]  # the parser's own names for its nodes
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, Final

from strobe.render.budget import compact_json

REDACTED: Final = "<redacted>"
TEXT_MAX: Final = 1 << 20  # longer texts are looked at up to here; the rest of such a text is left out by every reply's budget
_LINE_MAX: Final = 4096  # characters that one of the user's patterns is tried on at a time
_NAMES: Final = (
    r"pass(?:word|wd|phrase|code)|pwd|secret|credentials?|(?:api|access|private|secret|signing|encryption|master|account)[_.-]?key|"
    r"(?:access|auth|refresh|session|bearer|api|id|csrf|xsrf|security|user|bot|github|gitlab|npm|pypi)[_.-]?token|auth(?:orization)?[_.-]?header|cookie"
)
# A secret's name at the end of a longer one (DB_PASSWORD, client.secret, authToken), as a whole word or part in camel or snake case.
_NAME: Final = re.compile(rf"(?:^|[_.\-\s])(?:{_NAMES})(?:[_.-]?(?:hash|base64|b64|value|str|string|text|data|ptr|buf|\d+))?$", re.IGNORECASE)
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NOT_SECRET: Final = re.compile(
    r"(?:none|null|nil|true|false|undefined|empty|required|invalid|missing|incorrect|expired|wrong|ok|<.*>|\*+|x+|\.+|\$\{.*|%s|\d{1,3})$", re.IGNORECASE
)
# All parts are bounded, so that no text takes more than linear time.
_ASSIGNED: Final = re.compile(
    rf"(?P<key>[\"']?\b[\w.-]{{0,40}}?(?:{_NAMES})[\"']?\s?(?:=|:|=>)\s?)"
    r"(?P<quote>[\"']?)(?P<value>(?<=[\"'])[^\"'\n]{3,1000}|[^\s\"',;&|)}\]]{4,1000})",
    re.IGNORECASE,
)
_TOKEN: Final = re.compile(
    r"(?P<key>\b[\w.-]{0,40}token[\"']?[=:]\s?[\"']?)(?P<value>(?=[^\s\"',;&]{0,60}\d)[\w.~+/=-]{16,1000})", re.IGNORECASE
)
_BEARER: Final = re.compile(
    r"(?P<key>\b(?:authorization[\"']?\s?[:=]\s?[\"']?)?(?:bearer|basic|token)\s+)(?P<value>(?=\S{0,60}\d)[A-Za-z0-9._~+/=-]{12,1000})", re.IGNORECASE
)
_URL: Final = re.compile(r"(?P<key>\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@]{0,100}:)(?P<value>[^\s/@]{1,200})(?=@)", re.IGNORECASE)
_FORMS: Final = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|\beyJ[\w-]{8,4000}\.eyJ[\w-]{8,8000}\.[\w-]*"
    r"|\b(?:AKIA|ASIA|AGPA|AIDA|AROA)[0-9A-Z]{16}\b"
    r"|\bgh[pousr]_[A-Za-z0-9]{30,}|\bgithub_pat_\w{30,}|\bglpat-[\w-]{18,}|\bxox[abeoprs]-[\w-]{10,}|\bnpm_[A-Za-z0-9]{30,}|\bpypi-[\w-]{40,}"
    r"|\bsk-[\w-]{20,}|\b[rsp]k_(?:live|test)_[A-Za-z0-9]{16,}|\bAIza[\w-]{35}|\bya29\.[\w-]{20,}|\bSG\.[\w-]{16,}\.[\w-]{16,}|\bhf_[A-Za-z0-9]{30,}",
    re.DOTALL,
)
_FLAG: Final = re.compile(rf"--?(?:[\w-]*-)?(?:{_NAMES}|token)$", re.IGNORECASE)
# One of these is in every text, name or reply that has anything to redact: looking for them is quick, and most have none.
_HINTS: Final = (
    "passw", "passphrase", "passcode", "pwd", "secret", "credential", "key", "token", "cookie", "auth", "bearer", "basic", "://", "eyj", "akia", "asia", "agpa",
    "aida", "aroa", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "xox", "npm_", "pypi-", "sk-", "k_live_", "k_test_", "aiza", "ya29.",
    "sg.", "hf_",
)  # fmt: skip
# What a reply is made of, as against what the program said: never secrets of the target's.
_OWN: Final = frozenset((
    "id", "sessionId", "cursor", "lastEventId", "parentEventId", "function", "functionRaw", "sourceFile", "eventType", "type", "warnings", "status",
))  # fmt: skip


class Redactor:
    """`patterns`: the user's own (setting redaction.patterns), whole matches of which are redacted. `found` counts what was."""

    def __init__(self, patterns: Sequence[str] = ()) -> None:
        self.found = 0
        compiled = [_compiled(pattern) for pattern in patterns]
        self._own = [pattern for pattern in compiled if isinstance(pattern, re.Pattern)]
        self.warnings = [problem for problem in compiled if isinstance(problem, str)]

    def reply(self, wire: dict[str, Any]) -> dict[str, Any]:
        """A whole reply; the same object when there is nothing to redact."""
        if not self._own and not _hinted(compact_json(wire)):
            return wire
        before = self.found
        changed = self._mapping(wire)
        return changed if self.found > before else wire

    def text(self, text: str) -> str:
        """The text without what looks like a secret."""
        if not self._own and not _hinted(text):
            return text
        looked_at = text[:TEXT_MAX]
        changed = _FORMS.sub(self._whole, looked_at)
        for pattern in (_URL, _BEARER, _ASSIGNED, _TOKEN):
            changed = pattern.sub(self._valued, changed)
        if self._own:
            changed = "".join(self._lines(changed))
        return text if changed == looked_at else changed + text[TEXT_MAX:]

    def value(self, value: Any) -> Any:
        """Of a reply, or of anything in it: lists, objects, texts."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return self._mapping(value)
        if isinstance(value, list):
            return self._list(value)
        return value

    def _mapping(self, value: Mapping[str, Any]) -> dict[str, Any]:
        named = "name" in value and "value" in value and isinstance(value["name"], str)  # an argument, a variable
        return {key: self._member(key, str(value["name"]) if named and key == "value" else key, item) for key, item in value.items()}

    def _member(self, key: str, name: str, item: Any) -> Any:
        if key in _OWN:
            return item
        return self._named(item) if is_secret_name(name) else self.value(item)

    def _named(self, item: Any) -> Any:
        """What stands under a secret's name: every text in it."""
        if isinstance(item, str):
            return item if not item or _NOT_SECRET.match(item) or item.startswith("0x") else self._redacted()
        if isinstance(item, list):
            return [self._named(one) for one in item]
        if isinstance(item, Mapping):
            return {key: one if key == "@" else self._named(one) for key, one in item.items()}
        return item

    def _list(self, items: list[Any]) -> list[Any]:
        done: list[Any] = []
        for item in items:  # of a command line: --password hunter2
            after_flag = bool(done) and isinstance(item, str) and isinstance(done[-1], str) and len(done[-1]) < 64 and _FLAG.match(done[-1])
            done.append(self._named(item) if after_flag else self.value(item))
        return done

    def _redacted(self) -> str:
        self.found += 1
        return REDACTED

    def _whole(self, match: re.Match[str]) -> str:
        del match
        return self._redacted()

    def _valued(self, match: re.Match[str]) -> str:
        value = match["value"]
        if REDACTED in value or value in REDACTED or _NOT_SECRET.match(value):
            return match[0]
        return match[0][: match.start("value") - match.start()] + self._redacted() + match[0][match.end("value") - match.start() :]

    def _lines(self, text: str) -> list[str]:
        done = []
        for line in text.splitlines(keepends=True):
            for start in range(0, len(line), _LINE_MAX):
                piece = line[start : start + _LINE_MAX]
                for pattern in self._own:
                    piece = pattern.sub(lambda match: self._whole(match) if match[0] else "", piece)
                done.append(piece)
        return done


def _hinted(text: str) -> bool:
    lowered = text.lower()
    return any(hint in lowered for hint in _HINTS)


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """`DB_PASSWORD`, `apiKey`, `client.secret`; not `tokens`, `passwordLength`, `keyCount`."""
    return len(name) <= 200 and _hinted(name) and _NAME.search(_CAMEL.sub("_", name)) is not None


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str] | str:
    """The pattern, or why it is not used."""
    try:
        parsed = parser.parse(pattern)
        if _repeats_in_repeats(parsed, inside=False):
            return f"redaction.patterns: {pattern!r} repeats what repeats, which can take for ever; it is not used."
        return re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        return f"redaction.patterns: {pattern!r} is not a regular expression ({error}); it is not used."


def _repeats_in_repeats(parsed: Any, *, inside: bool) -> bool:
    for code, argument in parsed:
        repeats = code in (codes.MAX_REPEAT, codes.MIN_REPEAT) and argument[1] == codes.MAXREPEAT
        if repeats and inside:
            return True
        parts = argument if isinstance(argument, tuple | list) else ()
        for part in parts:
            branches = part if isinstance(part, list) else [part]
            for branch in branches:
                if isinstance(branch, parser.SubPattern) and _repeats_in_repeats(branch, inside=inside or repeats):
                    return True
    return False
