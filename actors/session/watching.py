"""The session's watches: what they begin at in the running target, and the plans that read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from actors.session.target import TYPES_PREFIX, Asker, Target
from strobe.errors import Code, StrobeError
from strobe.expression import Name
from strobe.model.probe import Module, Plan
from strobe.model.watch import WATCHES_MAX, ActiveWatch, Watch, check
from strobe.modules import is_own
from strobe.protocol.indexer import FoundVariable, Variables, VariablesReply
from strobe.values.bundle import Bundle
from strobe.values.registry import Formatters
from strobe.values.watch_plans import BASIC, BASIC_NUMBERS, Resolved, Root, watched
from strobe.values.watch_walks import Unwatchable

ASK_S: Final = 10.0


class Watching:
    """`resolved`: by label, in the order added. `on`: for those with patterns, the addresses of the functions that match."""

    def __init__(self, actor: Asker, target: Target, program: str | None = None) -> None:
        """`program`: the file of another process than the target's own."""
        self._actor = actor
        self._program = program or target.journal.launch.command
        self._target = target
        self._bundles: dict[str, Bundle] = {}
        self.resolved: dict[str, Resolved] = {}
        self.on: dict[str, set[int]] = {}
        self.problems: dict[str, dict[int, str]] = {}  # by label and function: why it is not read there

    @property
    def watches(self) -> list[Watch]:
        return self._target.journal.watches

    def changed(self, add: Sequence[Watch], remove: Sequence[str]) -> list[Watch]:
        """The watches as they would be. Errors: WATCH_FAILED for a removal of what is not there, LIMIT_EXCEEDED."""
        labels = {watch.label for watch in self.watches}
        for label in remove:
            if label not in labels:
                known = ", ".join(sorted(labels)) or "none"
                raise StrobeError(Code.WATCH_FAILED, f"There is no watch {label!r} to remove.", f"Active watches: {known}.", value=label)
        replaced = {*remove, *(watch.label for watch in add)}
        found = [*(watch for watch in self.watches if watch.label not in replaced), *add]
        if len(found) > WATCHES_MAX:
            raise StrobeError(Code.LIMIT_EXCEEDED, f"{len(found)} watches are more than {WATCHES_MAX}.", "Remove some first.", value=len(found))
        return found

    async def restore(self, modules: list[Module]) -> None:
        """After this process took over from one that died: what the installed plans read already."""
        missing = [watch for watch in self.watches if watch.label not in self.resolved]
        if missing:
            self.resolved |= await self.resolve(missing, modules)

    def put(self, watches: list[Watch], resolved: Mapping[str, Resolved]) -> None:
        """These are the watches from now on; `resolved` has those that are new."""
        self._target.journal.watches = watches
        known = {**self.resolved, **resolved}
        self.resolved = {watch.label: known[watch.label] for watch in watches}
        self.on = {label: places for label, places in self.on.items() if label in self.resolved}
        self.problems = {}

    async def resolve(self, watches: Sequence[Watch], modules: list[Module]) -> dict[str, Resolved]:
        """Errors: WATCH_FAILED for one that can be read nowhere."""
        found: dict[str, Resolved] = {}
        paths = {watch.label: checked[1] if (checked := check(watch)) else None for watch in watches}
        roots = {path.root.text.removeprefix("::") for path in paths.values() if path is not None and isinstance(path.root, Name)}
        types = {watch.type_name for watch in watches if watch.type_name is not None and watch.type_name not in BASIC_NUMBERS}
        reply = await self._variables(sorted(roots), sorted(types), modules) if roots or types else None
        bundle = None if reply is None else Bundle.unpack(reply.bundle)
        if reply is not None:
            self._target.announce_types({reply.key: reply.bundle})
        for watch in watches:
            path = paths[watch.label]
            root: Root | None
            problem: str | None
            if watch.address is not None:
                root, problem = self._placed(watch, reply, bundle), None
            elif path is not None and isinstance(path.root, Name) and reply is not None and bundle is not None:
                root, problem = _global(path.root.text.removeprefix("::"), reply, bundle, modules)
            else:
                root, problem = None, None
            found[watch.label] = Resolved(watch, path, root, problem)
        return found

    def plan_for(self, plan: Plan, address: int) -> Plan:
        """The plan of the function at `address` with the watches that are read on its calls."""
        wanted = [one for label, one in self.resolved.items() if not one.watch.on or address in self.on.get(label, ())]
        if not wanted:
            return plan
        made, problems = watched(plan, wanted, self._own(plan.types), self._formatters, self._target.journal.depth)
        for one in wanted:
            label = one.watch.label
            if label in problems:
                self.problems.setdefault(label, {})[address] = problems[label]
            else:
                self.problems.get(label, {}).pop(address, None)
        return made

    def active(self) -> list[ActiveWatch]:
        found = []
        for label, one in self.resolved.items():
            address, size, name = self._described(one)
            read_on = [item for item in self._target.journal.probes.active if any(value.label == label for value in item.hook.plan.watches)]
            found.append(
                ActiveWatch(
                    label=label, expr=one.watch.expr, address=None if address is None else hex(address), size=size, type_name=name, on=one.watch.on or None,
                    functions=len(read_on),
                )
            )  # fmt: skip
        return found

    def refuse_unreadable(self, added: Sequence[Watch]) -> None:
        """Errors: WATCH_FAILED for a new watch that is read on no function although there are some."""
        for watch in added:
            one = self.resolved[watch.label]
            if one.root is not None:
                try:
                    one.described(self._formatters)
                except Unwatchable as reason:
                    raise StrobeError(Code.WATCH_FAILED, f"Watch {watch.label!r}: {reason}.", "Correct the path.", value=watch.expr) from None
                continue
            problems = self.problems.get(watch.label, {})
            read = any(value.label == watch.label for item in self._target.journal.probes.installed.values() for value in item.hook.plan.watches)
            if read or (not problems and one.problem is None):
                continue
            why = one.problem or next(iter(problems.values()))
            raise StrobeError(Code.WATCH_FAILED, f"Watch {watch.label!r}: {why}", "Name a global or static variable, or an argument.", value=watch.expr)

    @property
    def _formatters(self) -> Formatters:
        return Formatters.of(Path(self._target.journal.project_root))[0]

    def _described(self, one: Resolved) -> tuple[int | None, int | None, str | None]:
        try:
            return one.described(self._formatters)
        except Unwatchable:
            return None, None, None

    def _own(self, key: str | None) -> Bundle | None:
        if key is None:
            return None
        if key not in self._bundles:
            self._bundles[key] = Bundle.unpack((self._target.folder / f"{TYPES_PREFIX}{key}").read_bytes())
        return self._bundles[key]

    async def _variables(self, names: list[str], types: list[str], modules: list[Module]) -> VariablesReply:
        journal = self._target.journal
        paths = [module.path for module in modules]
        own = [path for path in paths if is_own(path, self._program)]
        ask = Variables(names=names, types=types, modules=paths, main_modules=own, symbols_path=journal.launch.symbols_path)
        reply: VariablesReply = await self._actor.ask("indexer", ask, deadline_s=ASK_S)
        return reply

    def _placed(self, watch: Watch, reply: VariablesReply | None, bundle: Bundle | None) -> Root:
        """Of an address with a type. Errors: WATCH_FAILED for a type that nobody knows."""
        assert watch.address is not None and watch.type_name is not None
        if watch.type_name in BASIC_NUMBERS:
            basic = Bundle(BASIC)
            key, body = basic.pack()
            self._target.announce_types({key: body})
            return Root(watch.expr, watch.address, BASIC_NUMBERS[watch.type_name], basic, key)
        number = reply.types.get(watch.type_name) if reply is not None else None
        if number is None or reply is None or bundle is None:
            what = f"Watch {watch.label!r}: there is no type `{watch.type_name}`."
            raise StrobeError(Code.WATCH_FAILED, what, f"Use {', '.join(BASIC_NUMBERS)}, or a type of the program.", value=watch.type_name)
        return Root(watch.expr, watch.address, number, bundle, reply.key)


def _global(name: str, reply: VariablesReply, bundle: Bundle, modules: Sequence[Module]) -> tuple[Root | None, str | None]:
    """(where it is, else why it can't be watched)."""
    candidates = reply.variables.get(name, [])
    bias: Mapping[str, int] = {module.path: module.bias for module in modules}
    usable = [one for one in candidates if one.kind == "address" and isinstance(one.value, int) and one.type is not None and one.module in bias]
    if usable:
        one = usable[0]
        assert isinstance(one.value, int) and one.type is not None
        return Root(one.name, bias[one.module] + one.value, one.type, bundle, reply.key), None
    return None, _why(name, candidates, reply)


def _why(name: str, candidates: Sequence[FoundVariable], reply: VariablesReply) -> str:
    kinds = {one.kind for one in candidates}
    if "thread_local" in kinds:
        return f"`{name}` is thread-local: each thread has its own; debug_memory reads it."
    if "constant" in kinds:
        return f"`{name}` is a constant: it has no place in memory."
    if any(one.kind == "address" for one in candidates):
        return f"`{name}` has no type in debug info; give its address and type."
    if candidates:
        return f"`{name}` was optimised out, or is defined in no loaded module."
    if reply.locals_of.get(name):
        return f"`{name}` is a local variable of {', '.join(reply.locals_of[name][:3])}; watches read globals, statics and arguments."
    near = ", ".join(f"`{one}`" for one in reply.near.get(name, [])[:5])
    return f"there is no variable `{name}`, and no traced function has such an argument." + (f" Nearest names: {near}." if near else "")
