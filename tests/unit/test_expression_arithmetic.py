"""Arithmetic is C's: the same texts, computed here and by gcc, in one program."""

from __future__ import annotations

import random
import struct
import subprocess
from pathlib import Path
from typing import Literal

from strobe.expression import Scalar, evaluate, parse, show
from strobe.expression.lexer import tokens
from strobe.expression.tree import Binary, Conditional, Integer, Name, Node, Real, Unary
from tests.harness import typed_memory as t

EXPRESSIONS = 400
Kind = Literal["s", "u", "d"]  # long long, unsigned long long, double
VARIABLES: dict[str, Kind] = {"s1": "s", "s2": "s", "u1": "u", "u2": "u", "d1": "d", "d2": "d"}
SETS: list[tuple[int | float, ...]] = [
    (0, 1, 0, 1, 0.0, 1.5),
    (-1, 7, 2**64 - 1, 3, -0.25, 1e300),
    (-(2**63), 2**63 - 1, 2**63, 2**63 - 1, float("inf"), 9007199254740993.0),
    (-123456789012345, 42, 0xDEADBEEFCAFE, 2**64 - 5, -1e-300, 18446744073709551615.0),
]
TYPES = {"s": t.LONG, "u": t.UNSIGNED_LONG, "d": t.DOUBLE}
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")


class Writer:
    """Random trees without what C leaves undefined: divisors are small and never 0 or -1, shifts are by 0 to 63. Overflow wraps by -fwrapv.

    Truths are of type int in C: they are added to a long zero before they take part in arithmetic.
    """

    def __init__(self, pick: random.Random) -> None:
        self.pick = pick

    def any(self, depth: int) -> Node:
        return self.truth(depth) if self.pick.random() < 0.3 else self.number(self.pick.choice("sud"), depth)  # type: ignore[arg-type]

    def number(self, kind: Kind, depth: int) -> Node:
        if depth == 0 or self.pick.random() < 0.1:
            return self.leaf(kind)
        form = self.pick.random()
        if form < 0.1:
            return Conditional(self.truth(depth - 1), self.number(kind, depth - 1), self.number(kind, depth - 1))
        if form < 0.25:
            return Unary(self.pick.choice("-+" if kind == "d" else "-+~"), self.number(kind, depth - 1))
        if kind == "d":
            return Binary(self.pick.choice("+-*/"), *self.mixed("d", ("s", "u", "d"), depth))
        if form < 0.35 and kind == "s":
            return Binary("+", self.truth(depth - 1), Integer(0))
        if form < 0.5:
            count = Binary("&", self.number(self.pick.choice("su"), depth - 1), Integer(63))  # type: ignore[arg-type]
            return Binary(self.pick.choice(["<<", ">>"]), self.number(kind, depth - 1), count)
        if form < 0.65:
            return Binary(self.pick.choice("/%"), self.number(kind, depth - 1), self.divisor(kind, depth))
        return Binary(self.pick.choice("+-*&|^"), *self.mixed(kind, ("s",) if kind == "s" else ("s", "u"), depth))

    def mixed(self, kind: Kind, others: tuple[Kind, ...], depth: int) -> tuple[Node, Node]:
        """One side of the kind, the other of a kind that is converted to it."""
        sides = [self.number(kind, depth - 1), self.number(self.pick.choice(others), depth - 1)]
        self.pick.shuffle(sides)
        return sides[0], sides[1]

    def divisor(self, kind: Kind, depth: int) -> Node:
        small = Binary("|", Binary("&", self.number(kind, depth - 1), Integer(1023)), Integer(2))
        return Unary("-", small) if kind == "s" and self.pick.random() < 0.5 else small

    def truth(self, depth: int) -> Node:
        form = self.pick.random()
        if depth > 0 and form < 0.3:
            return Binary(self.pick.choice(["&&", "||"]), self.any(depth - 1), self.any(depth - 1))
        if depth > 0 and form < 0.4:
            return Unary("!", self.any(depth - 1))
        depth = max(0, depth - 1)
        return Binary(self.pick.choice(COMPARISONS), self.number(self.pick.choice("sud"), depth), self.number(self.pick.choice("sud"), depth))  # type: ignore[arg-type]

    def leaf(self, kind: Kind) -> Node:
        if self.pick.random() < 0.7:
            return Name(self.pick.choice([name for name, own in VARIABLES.items() if own == kind]))
        if kind == "d":
            return Real(self.pick.choice([0.0, 0.5, 4.5, 1e-9, 123456.75, self.pick.random()]))
        return Integer(self.pick.choice([0, 1, 2, 255, 2**31 - 1, 2**32, self.pick.randrange(2**63)]), kind == "u")


def in_c(text: str) -> str:
    """The same text; integers without a suffix are long there too."""
    for token in reversed(tokens(text)):
        if token.kind == "integer" and token.text.isdecimal():
            text = f"{text[: token.end]}ll{text[token.end :]}"
    return text


def literal(value: int | float, kind: Kind) -> str:
    if kind == "d":
        return "__builtin_inf()" if value == float("inf") else float(value).hex()
    return f"{int(value) % 2**64:#x}ull"


def program(texts: list[str]) -> str:
    shown = "\n".join(f"    SHOW({in_c(text)});" for text in texts)
    sets = "\n".join(
        "    " + " ".join(f"{name} = {literal(value, kind)};" for (name, kind), value in zip(VARIABLES.items(), values, strict=True)) + " all();"
        for values in SETS
    )
    return f"""#include <stdio.h>
static volatile long long s1, s2; static volatile unsigned long long u1, u2; static volatile double d1, d2;
static void s(long long v) {{ printf("s %llx\\n", (unsigned long long)v); }}
static void u(unsigned long long v) {{ printf("u %llx\\n", v); }}
static void d(double v) {{ union {{ double d; unsigned long long u; }} bits = {{v}}; printf("d %llx\\n", v != v ? 0x7ff8000000000000 : bits.u); }}
static void i(int v) {{ printf("i %x\\n", v); }}
#define SHOW(e) _Generic((e), int: i, long long: s, unsigned long long: u, double: d)(e)
static void all(void) {{
{shown}
}}
int main(void) {{
{sets}
    return 0;
}}
"""


def shown(scalar: Scalar) -> str:
    """As the program shows it."""
    value = scalar.value
    if isinstance(value, bool):
        return f"i {int(value):x}"
    if isinstance(value, float):
        bits = struct.unpack("<Q", struct.pack("<d", value))[0]
        return f"d {0x7FF8000000000000 if value != value else bits:x}"
    assert isinstance(value, int)
    assert (0 if scalar.unsigned else -(2**63)) <= value < (2**64 if scalar.unsigned else 2**63)
    return f"{'u' if scalar.unsigned else 's'} {value % 2**64:x}"


def worlds() -> list[t.World]:
    found = []
    for values in SETS:
        memory = t.Memory(0x1000)
        places = {
            name: t.Place(memory, TYPES[kind], memory.put(struct.pack("<" + TYPES[kind].form, value)))
            for (name, kind), value in zip(VARIABLES.items(), values, strict=True)
        }
        found.append(t.World(memory, places))
    return found


def as_scalar(text: str, world: t.World) -> Scalar:
    outcome = evaluate(parse(text), world)
    scalar = outcome.scalar() if isinstance(outcome, t.Place) else outcome
    assert isinstance(scalar, Scalar), (text, outcome)
    return scalar


def test_as_gcc_computes(tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(2**32)
    writer = Writer(random.Random(seed))
    compared = pairs([show(writer.any(4)) for _ in range(EXPRESSIONS)], tmp_path)
    different = [one for one in compared if one[2] != one[3]]
    assert different == [], f"seed {seed}"
    assert {line[0] for *_, line in compared} == {"s", "u", "d", "i"}


def test_the_sign_of_a_zero(tmp_path: Path) -> None:
    """IEEE 754 §6.3: a difference of equal operands is +0, a product's sign is that of its factors; an integer 0 is +0."""
    texts = {
        "0.0 - s1": "d 0", "(0.0 - s1) * +(s1 ^ s1)": "d 0", "(s2 + 6837686021735180702 + +(255 / d2)) * ((0.0 - s1) * +(s1 ^ s1))": "d 0",
        "-(s1 + 0.0)": "d 8000000000000000", "-0.0 - s1": "d 8000000000000000", "-1.5 * s1": "d 8000000000000000", "d1 - d1": "d 0", "-d1 + d1": "d 0",
        "-d1 - d1": "d 8000000000000000", "-d2 * s1": "d 8000000000000000", "s1 / -d2": "d 8000000000000000", "+-d1": "d 8000000000000000",
    }  # fmt: skip
    first_set = pairs(list(texts), tmp_path)[: len(texts)]
    assert [(text, ours) for text, _, ours, _ in first_set] == list(texts.items())
    assert [(text, theirs) for text, _, _, theirs in first_set] == list(texts.items())


def pairs(texts: list[str], folder: Path) -> list[tuple[str, int, str, str]]:
    """(expression, number of the variables' set, ours, gcc's). Without -frounding-math gcc makes -x of 0.0 - x where x is a converted integer, which is -0.0
    for 0 (gcc 12, fold_real_zero_addition_p; not what it says of the same x in a double variable, nor what Clang does)."""
    source = folder / "expressions.c"
    source.write_text(program(texts))
    flags = ["-std=gnu11", "-O0", "-w", "-fwrapv", "-ffp-contract=off", "-frounding-math"]
    subprocess.run(["gcc", *flags, "-o", folder / "expressions", source], check=True, timeout=60)
    lines = subprocess.run([folder / "expressions"], check=True, capture_output=True, text=True, timeout=60).stdout.splitlines()
    ours = [(text, number, shown(as_scalar(text, world))) for number, world in enumerate(worlds()) for text in texts]
    assert len(lines) == len(ours) == len(texts) * len(SETS)
    return [(*one, line) for one, line in zip(ours, lines, strict=True)]
