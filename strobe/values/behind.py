"""Which types may stand behind a value whose type only the running program's code knows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from strobe.values.bundle import Code
from strobe.values.forms import Erased

BEHIND_MAX: Final = 32  # types that one value is tried for
DYN: Final = "dyn "


def names_trait(name: str, trait: str) -> bool:
    """Whether the type called `name` has to do with objects of the trait, called as Rust's vtables have it: `Fn<(u16)>` is `dyn Fn<(u16), Output=u16>` in
    names of types, `Future` is `dyn Future<Output=u16>`."""
    wanted = DYN + trait.removesuffix(">")
    at = name.find(wanted)
    while at >= 0:
        following = name[at + len(wanted) : at + len(wanted) + 1]
        if not following.isalnum() and following not in ("_", ":"):
            return True
        at = name.find(wanted, at + 1)
    return False


def behind(form: Erased, codes: Iterable[Code]) -> list[Code]:
    """At most BEHIND_MAX."""
    if form.kind == "dyn":
        found = [code for code in codes if code.role.startswith(DYN) and names_trait(form.trait, code.role.removeprefix(DYN))]
    else:
        found = [code for code in codes if form.kind == "any" and code.role in ("any", "boxed any")]
    return found[:BEHIND_MAX]
