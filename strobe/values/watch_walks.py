"""What the recorder has to copy for a watch: no more of each object on its path than the path needs, and its value as deep as values are captured.

    gState->orders[2].total      AT gState (8 bytes) → POINT 0 (up to `orders`) → POINT to the array (up to [2].total)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from strobe.expression import Chain
from strobe.expression.paths import Step as PathStep
from strobe.lanes.layout import WalkOp
from strobe.model.type_nodes import Array, Pointer, Record, TypeId
from strobe.values.forms import Inner, Owner
from strobe.values.forms import Sequence as SequenceForm
from strobe.values.walk_steps import NOTHING, Step
from strobe.values.walks import WalkCompiler

HOPS_MAX = 4
REACH_MAX = 4096  # bytes of one object that a path may need


class Unwatchable(Exception):
    """Why, in words that name the part of the path."""


@dataclass(slots=True)
class Hop:
    """One object on the path, which the word at `pointer` in the object before points to. What is looked at lies at `offset` in it; the path needs
    its first `needs` bytes."""

    pointer: int
    offset: int
    type: TypeId
    needs: int = 0


def hops(compiler: WalkCompiler, root: TypeId, path: Chain) -> list[Hop]:
    """From the root object to the value, which is the last hop's. Raises Unwatchable."""
    found = [Hop(0, 0, root)]
    for step in path.steps:
        _take(compiler, found, step)
        if len(found) - 1 > HOPS_MAX:
            raise Unwatchable(f"it follows more than {HOPS_MAX} pointers")
        if found[-1].offset > REACH_MAX:
            raise Unwatchable(f"what it looks at lies {found[-1].offset:,} bytes into an object; {REACH_MAX:,} are the most")
    size = compiler.table.size(found[-1].type)
    if not size:
        raise Unwatchable(f"`{compiler.table[found[-1].type].name}` has no size")
    found[-1].needs = min(found[-1].offset + size, 2 * REACH_MAX)
    return found


def program(compiler: WalkCompiler, path: Sequence[Hop], depth: int) -> list[Step]:
    """Steps to run on the root object, of which path[0].needs bytes are there."""
    steps = compiler.object(path[-1].type, path[-1].offset, depth)
    for hop in reversed(path[1:]):
        steps = [Step(WalkOp.POINT, hop.pointer, hop.needs, compiler.anonymous(steps) if steps else NOTHING)]
    return steps


def _take(compiler: WalkCompiler, found: list[Hop], step: PathStep) -> None:
    match step.kind:
        case "follow":
            _follow(compiler, found)
        case "member":
            _member(compiler, found, str(step.key))
        case _:
            _index(compiler, found, step.key)


def _here(compiler: WalkCompiler, found: list[Hop]) -> Hop:
    """The object meant: references are what they refer to, wrappers what is in them."""
    for _ in range(8):
        hop = found[-1]
        node = compiler.table.stripped(hop.type)
        if isinstance(node, Pointer) and node.form != "pointer":
            _go(compiler, found, hop.offset, 0, node.target)
            continue
        form = compiler.form(hop.type)
        if not isinstance(form, Inner):
            break
        hop.offset, hop.type = hop.offset + form.offset, form.type
    return found[-1]


def _go(compiler: WalkCompiler, found: list[Hop], pointer: int, offset: int, target: TypeId) -> None:
    """On to what `pointer` points to; of the object it lies in, all that says so is needed."""
    hop = found[-1]
    hop.needs = max(pointer + 8, hop.offset + (compiler.table.size(hop.type) or 0))
    found.append(Hop(pointer, offset, target))


def _follow(compiler: WalkCompiler, found: list[Hop]) -> None:
    hop = _here(compiler, found)
    node = compiler.table.stripped(hop.type)
    form = compiler.form(hop.type)
    if isinstance(form, Owner) and form.length is None:
        _go(compiler, found, hop.offset + form.pointer, form.skip, form.target)
    elif isinstance(node, Pointer):
        _go(compiler, found, hop.offset, 0, node.target)
    elif isinstance(node, Array):
        hop.type = node.element
    else:
        raise Unwatchable(f"`{compiler.table[hop.type].name}` is no pointer")


def _member(compiler: WalkCompiler, found: list[Hop], name: str) -> None:
    hop = _here(compiler, found)
    table = compiler.table
    if isinstance(table.stripped(hop.type), Pointer) or isinstance(compiler.form(hop.type), Owner):
        _follow(compiler, found)
        hop = _here(compiler, found)
    record = table.stripped(hop.type)
    if not isinstance(record, Record):
        raise Unwatchable(f"`{table[hop.type].name}` has no members")
    member = table.member(hop.type, name)
    if member is None:
        names = ", ".join(f"`{one.name}`" for one in list(table.members(hop.type))[:8])
        raise Unwatchable(f"`{record.name}` has no member `{name}`; it has {names or 'none'}")
    hop.offset, hop.type = hop.offset + member.offset, member.type


def _index(compiler: WalkCompiler, found: list[Hop], key: int | str | None) -> None:
    hop = _here(compiler, found)
    table = compiler.table
    node, form = table.stripped(hop.type), compiler.form(hop.type)
    if not isinstance(key, int) or key < 0:
        raise Unwatchable(f"[{key!r}]: a watch takes numbers from 0 on as indexes")
    if isinstance(form, SequenceForm):
        if form.inline:
            hop.offset, hop.type = hop.offset + form.data + key * form.stride, form.element
        else:
            _go(compiler, found, hop.offset + form.data, key * form.stride, form.element)
        return
    if isinstance(node, Array):
        element = _element(node)
        hop.offset, hop.type = hop.offset + key * (table.size(element) or 0), element
        return
    if isinstance(node, Pointer):
        _go(compiler, found, hop.offset, key * (table.size(node.target) or 0), node.target)
        return
    raise Unwatchable(f"`{table[hop.type].name}` is neither an array nor a vector")


def _element(node: Array) -> TypeId:
    if len(node.counts) > 1:
        raise Unwatchable(f"`{node.name}` has {len(node.counts)} dimensions; watch an element of it by a pointer")
    return node.element
