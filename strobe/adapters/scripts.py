"""What a package's scripts say of how its tests are run: a runner's arguments often stand nowhere else."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from strobe.adapters.packages import Package
from strobe.model.testing import Level

_ASSIGNMENT: Final = re.compile(r"^[A-Za-z_]\w*=")
_CHECKS: Final = re.compile(r"\b(?:eslint|prettier|lint|standard|xo|biome|tslint|oxlint|stylelint|audit|typecheck|type-check|types|format)\b|--noEmit")
_UNREADABLE: Final = frozenset({"|", "||", "&", "(", ")", ">", ">>", "<", "|&"})
_LEVELS: Final[Mapping[str, re.Pattern[str]]] = {
    "unit": re.compile(r"unit", re.I),
    "integration": re.compile(r"integration|(?:^|[:_-])int(?:$|[:_-])", re.I),
    "e2e": re.compile(r"e2e|end-?to-?end|acceptance|browser", re.I),
}


@dataclass(frozen=True, slots=True)
class Script:
    """One use of a runner. `before`: shell lines that come first (a compiler); `program_args`: those between `node` and the runner."""

    name: str
    args: tuple[str, ...] = ()
    program_args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    before: tuple[str, ...] = ()


def script_of(package: Package, runner: Sequence[str], level: Level | None = None) -> Script | None:
    """The script that runs this runner (`("vitest",)`, `("bun", "test")`): of the level, if there is one, else `test`, else the first."""
    found = [one for name, text in package.scripts.items() if (one := read_script(name, text, runner, package.scripts)) is not None]
    if level is not None:
        for one in found:
            if _LEVELS[level].search(one.name):
                return one
    others = [one for one in found if not any(pattern.search(one.name) for pattern in _LEVELS.values())] or found
    usual = [one for one in others if not re.search(r"watch|cov|debug|update|ui|bench", one.name)]
    return next((one for one in usual if one.name == "test"), None) or next(iter(usual or others), None)


def has_level(package: Package, runner: Sequence[str], level: Level) -> bool:
    script = script_of(package, runner, level)
    return script is not None and bool(_LEVELS[level].search(script.name))


def read_command(command: str, runner: Sequence[str], package: Package | None) -> Script | None:
    """A shell line that a user gave: of the runner itself, or `npm test`, `yarn test:unit`, `pnpm run x -- --bail`."""
    own = read_script("command", command, runner, {})
    if own is not None or package is None:
        return own
    words = _words(command) or []
    if len(words) < 2 or words[0] not in ("npm", "yarn", "pnpm", "bun"):
        return None
    rest = words[2:] if words[1] in ("run", "run-script") else words[1:]
    if not rest:
        return None
    name = "test" if rest[0] == "t" else rest[0]
    text = package.scripts.get(name)
    script = read_script(name, text, runner, package.scripts) if text is not None else None
    extra = tuple(word for word in rest[1:] if word != "--")
    return Script(script.name, (*script.args, *extra), script.program_args, script.env, script.before) if script is not None else None


def read_script(name: str, text: str, runner: Sequence[str], scripts: Mapping[str, str]) -> Script | None:
    """None where the runner is not in it, or not in a way that can be repeated with other arguments."""
    words = _words(text)
    if words is None or _UNREADABLE & set(words):
        return None
    lines = _lines(words)
    for position, line in enumerate(lines):
        use = _use(name, line, runner)
        if use is not None:
            first = [scripts[f"pre{name}"]] if f"pre{name}" in scripts else []
            before = tuple(one for one in (*first, *(shlex.join(part) for part in lines[:position])) if not _CHECKS.search(one))
            return Script(use.name, use.args, use.program_args, use.env, before)
    return None


def _words(text: str) -> list[str] | None:
    try:
        lexer = shlex.shlex(text.replace("\\\n", " ").replace("\n", " ; "), posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        lexer.commenters = ""
        return list(lexer)
    except ValueError:
        return None


def _lines(words: Sequence[str]) -> list[list[str]]:
    lines: list[list[str]] = [[]]
    for word in words:
        if word in ("&&", ";"):
            lines.append([])
        else:
            lines[-1].append(word)
    return [line for line in lines if line]


def _use(name: str, line: Sequence[str], runner: Sequence[str]) -> Script | None:
    env: dict[str, str] = {}
    words = list(line)
    while words and (_ASSIGNMENT.match(words[0]) or words[0] in ("env", "cross-env", "cross-env-shell")):
        variable, _, value = words.pop(0).partition("=")
        if value or variable not in ("env", "cross-env", "cross-env-shell"):
            env[variable] = value
    for position, word in enumerate(words):
        if _tool(word) != runner[0]:
            continue
        if runner[0] == "node":
            return _node_use(name, words[position + 1 :], env)
        rest = words[position + 1 :]
        if rest[: len(runner) - 1] != list(runner[1:]):
            continue
        before = words[:position]
        at = next((index for index, other in enumerate(before) if _tool(other) == "node"), None)
        return Script(name, tuple(rest[len(runner) - 1 :]), tuple(before[at + 1 :]) if at is not None else (), env)
    return None


def _node_use(name: str, words: Sequence[str], env: Mapping[str, str]) -> Script | None:
    if "--test" not in words:
        return None
    return Script(name, tuple(word for word in words if word != "--test"), (), env)


def _tool(word: str) -> str:
    """`./node_modules/.bin/jest`, `node_modules/jest/bin/jest.js` and `_mocha` are `jest`, `jest`, `mocha`."""
    return re.sub(r"\.[cm]?js$", "", word.rsplit("/", 1)[-1]).removeprefix("_")


def without(args: Sequence[str], flags: Sequence[str], valued: Sequence[str]) -> list[str]:
    """Arguments without these flags, and without those of `valued` and their values. A flag also means `--flag=…` and `--flag.…`."""
    kept: list[str] = []
    skip = False
    for arg in args:
        if skip:
            skip = False
            continue
        stem = re.split(r"[=.]", arg, maxsplit=1)[0] if arg.startswith("--") else arg
        if stem in valued:
            skip = "=" not in arg
        elif stem not in flags:
            kept.append(arg)
    return kept


def split_positional(args: Sequence[str], valued: Sequence[str] = ()) -> tuple[list[str], list[str]]:
    """(options with their values, positional arguments). A word after an option in `valued` is its value."""
    options: list[str] = []
    positional: list[str] = []
    takes = False
    for index, arg in enumerate(args):
        if arg == "--":
            positional += args[index + 1 :]
            break
        if takes:
            options.append(arg)
            takes = False
        elif arg.startswith("-"):
            options.append(arg)
            takes = arg in valued
        else:
            positional.append(arg)
    return options, positional
