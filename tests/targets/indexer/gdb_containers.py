"""Runs inside gdb: values of libstdc++'s classes as strobe/values/README.md has them, by libstdc++'s own pretty printers (share/gcc/python)."""

import itertools
import re

import gdb
from gdb_shown import ELEMENTS, ENOUGH, UNKNOWN, Shown, plain, text_at, unit_of

ROWS = ("StdVectorPrinter", "StdListPrinter", "StdForwardListPrinter", "StdDequePrinter", "StdInitializerListPrinter", "StdSpanPrinter")
SETS = ("StdSetPrinter", "Tr1UnorderedSetPrinter")
MAPS = ("StdMapPrinter", "Tr1UnorderedMapPrinter")
PARTS = ("StdPairPrinter", "StdTuplePrinter")
TEXTS = ("std::basic_string<", "std::__cxx11::basic_string<", "std::basic_string_view<")
COUNT = re.compile(r"length (\d+)|with (\d+) element")


def contained(shown, value, kind, depth):
    try:
        return _contained(shown, value, kind, depth)
    except (AttributeError, OverflowError, TypeError) as error:  # a printer that does not find a type, or reads what was never made
        return f"{UNKNOWN}its printer says {type(error).__name__}>"


def _contained(shown, value, kind, depth):
    name = kind.name or ""
    if not name.startswith("std::"):
        return NotImplemented
    if name.startswith("std::array<"):
        return shown.value(value["_M_elems"], depth) if int(kind.template_argument(1)) else []
    if name.startswith(("std::atomic<", "std::function<", "std::any")):
        return f"{UNKNOWN}no printer for {name}>"
    printer = gdb.default_visualizer(value)
    which = type(printer).__name__
    if which in ("StdStringPrinter", "StdStringViewPrinter"):
        return text(value, name)
    if which in (*ROWS, *SETS):
        return row(shown, printer, depth)
    if which in MAPS:
        return mapping(shown, printer, depth, is_key(value.type.strip_typedefs().template_argument(0)))
    if which in PARTS:
        return [inner(shown, one, depth) for _, one in printer.children()]
    if which == "UniquePointerPrinter":
        return pointer(shown, printer, depth)
    if which == "SharedPointerPrinter":
        return shared(shown, printer, depth)
    if which == "StdExpOptionalPrinter":
        found = [inner(shown, one, depth) for _, one in printer.children()]
        return found[0] if found else None
    if which == "StdStackOrQueuePrinter":
        return shown.value(value["c"], depth)
    return NotImplemented


def text(value, name):
    """The printer's lazy_string says where the characters are, and how many."""
    lazy = gdb.default_visualizer(value).to_string()
    if isinstance(lazy, str):
        return lazy
    unit = lazy.type.target().sizeof
    return text_at(lazy.address, unit, lazy.length)


def inner(shown, one, depth):
    """Printers of vector<bool> and bitset give Python's own numbers."""
    return shown.value(one, depth) if isinstance(one, gdb.Value) else bool(one)


def count_of(printer):
    """None: it is empty."""
    said = printer.to_string()
    if "empty" in said:
        return 0
    found = COUNT.search(said)
    return int(found[1] or found[2]) if found else None


def first(printer, count):
    return [one for _, one in itertools.islice(printer.children(), count)]


def row(shown, printer, depth):
    count = count_of(printer)
    if count is None:  # a list's printer does not count
        count = sum(1 for _ in itertools.islice(printer.children(), 100_000))
    if count == 0 or depth <= 0:
        return [f"… {count} more"] if count else []
    found = []
    for one in first(printer, min(count, ELEMENTS)):
        if shown.left <= 0:
            return [*found, ENOUGH]
        found.append(inner(shown, one, depth - 1))
    return [*found, f"… {count - ELEMENTS} more"] if count > ELEMENTS else found


def is_key(kind):
    """Texts, numbers and enumerators are keys in objects."""
    kind = plain(kind)
    is_text = kind.code == gdb.TYPE_CODE_PTR and unit_of(kind.target()) is not None
    return is_text or kind.code in (gdb.TYPE_CODE_INT, gdb.TYPE_CODE_CHAR, gdb.TYPE_CODE_ENUM) or (kind.name or "").startswith(TEXTS)


def mapping(shown, printer, depth, has_keys):
    """An object where keys can be that and are distinct, else a list of pairs."""
    count = count_of(printer)
    if count and depth <= 0:
        return {"…": f"{count} more"} if has_keys else [f"… {count} more"]
    parts = []
    for one in first(printer, 2 * min(count, ELEMENTS)):
        if shown.left <= 0:
            return ENOUGH
        parts.append(inner(shown, one, depth - 1))
    pairs = [list(pair) for pair in zip(parts[::2], parts[1::2])]
    rest = f"{count - ELEMENTS} more" if count > ELEMENTS else None
    if not pairs or (has_keys and len({str(key) for key, _ in pairs}) == len(pairs)):
        return {**{str(key): value for key, value in pairs}, **({"…": rest} if rest else {})}
    return [*pairs, f"… {rest}"] if rest else pairs


def target_of(printer):
    """The pointer inside: a printer's child."""
    return next((one for _, one in printer.children()), None)


def pointer(shown, printer, depth):
    found = target_of(printer)
    return None if found is None or int(found) == 0 else shown.value(found, depth)


def shared(shown, printer, depth):
    said = printer.to_string()
    if "expired" in said:
        return "<expired>"
    found = target_of(printer)
    if found is None or int(found) == 0:
        return None
    value = shown.value(found, depth)
    count = re.search(r"use count (\d+)", said)
    if isinstance(value, dict) and "@" in value and count:
        return {"@": value.pop("@"), "@use_count": int(count[1]), **value}
    return value


def show(value, values):
    return Shown(contained, values).value(value)
