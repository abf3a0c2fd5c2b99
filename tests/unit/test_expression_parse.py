"""Texts to trees, and what is said of texts that are none. The tables are the specification."""

from __future__ import annotations

import pytest

from strobe.errors import Code
from strobe.expression import HEIGHT_MAX, LENGTH_MAX, NESTING_MAX, ExpressionError, parse, show
from strobe.expression.tree import (
    Argument,
    Array,
    Binary,
    Cast,
    Character,
    Conditional,
    Index,
    Integer,
    Member,
    Name,
    Node,
    Null,
    Real,
    Result,
    Text,
    Truth,
    Unary,
    walk,
)

a, b, c, p = Name("a"), Name("b"), Name("c"), Name("p")

TREES: dict[str, Node] = {
    # literals
    "0": Integer(0),
    "0777": Integer(0o777),
    "0x1F": Integer(31),
    "0b101": Integer(5),
    "10u": Integer(10),
    "10UL": Integer(10, True),
    "10llu": Integer(10, True),
    "0xffffffffffffffff": Integer(2**64 - 1, True),
    "9223372036854775808": Integer(2**63),
    "4.5": Real(4.5),
    ".5e-3": Real(0.0005),
    "1.": Real(1.0),
    "1e3": Real(1000.0),
    "0x1.8p1": Real(3.0),
    "0.1f": Real(0.10000000149011612),
    "'a'": Character(97),
    r"'\n'": Character(10),
    r"'\0'": Character(0),
    r"'\xff'": Character(-1),
    "u'é'": Character(0xE9),
    r'"a\tb\"\x41\101\u00e9"': Text('a\tb"AAé'),
    r'"\xc3\xa9"': Text("é"),
    r'"\xff"': Text("\udcff"),
    '""': Text(""),
    "true": Truth(True),
    "null": Null(),
    "nullptr": Null(),
    "NULL": Null(),
    # names
    "gMode": Name("gMode"),
    "this": Name("this"),
    "größe": Name("größe"),
    "::errno": Name("::errno"),
    "ns::Type::static_member": Name("ns::Type::static_member"),
    "ns :: x": Name("ns::x"),
    "std::vector<int>::npos": Name("std::vector<int>::npos"),
    "std::map<int, std::vector<unsigned  char>>::x": Name("std::map<int, std::vector<unsigned char>>::x"),
    "a<b>::c": Name("a<b>::c"),
    "a < b > ::c": Binary(">", Binary("<", a, b), Name("::c")),
    "a<b>c": Binary(">", Binary("<", a, b), c),
    "a<b": Binary("<", a, b),
    "`(anonymous namespace)::count`": Name("(anonymous namespace)::count"),
    "`<T as Trait>::MAX` + 1": Binary("+", Name("<T as Trait>::MAX"), Integer(1)),
    "args[0]": Argument(0),
    "args.name": Argument("name"),
    "args.0": Argument(0),
    "args[0].sampleRate": Member(Argument(0), "sampleRate"),
    "args": Name("args"),
    "args[a]": Index(Name("args"), a),
    "args->x": Member(Name("args"), "x", True),
    "`args`[0]": Index(Name("args"), Integer(0)),
    "ret": Result(),
    "ret->size": Member(Result(), "size", True),
    "`ret`": Name("ret"),
    "and": Name("and"),
    # paths
    "a->b.c[3]": Index(Member(Member(a, "b", True), "c"), Integer(3)),
    "pair.0.1": Member(Member(Name("pair"), "0"), "1"),
    "p->Base::x": Member(p, "Base::x", True),
    "a.true": Member(a, "true"),
    "*p@10": Array(Unary("*", p), Integer(10)),
    "*p@n+1": Array(Unary("*", p), Binary("+", Name("n"), Integer(1))),
    "p@2 << 1": Binary("<<", Array(p, Integer(2)), Integer(1)),
    "**p": Unary("*", Unary("*", p)),
    "*p->q": Unary("*", Member(p, "q", True)),
    "(*p).q": Member(Unary("*", p), "q"),
    "&a.b": Unary("&", Member(a, "b")),
    "*p.b[1]": Unary("*", Index(Member(p, "b"), Integer(1))),
    'm["key"]': Index(Name("m"), Text("key")),
    # casts
    "(struct foo *)0x1234": Cast("struct foo", 1, Integer(0x1234)),
    "*(unsigned long**)a": Unary("*", Cast("unsigned long", 2, a)),
    "((const ns::T *const)a)->b": Member(Cast("ns::T", 1, a), "b", True),
    "(std::vector<int> const*)a": Cast("std::vector<int>", 1, a),
    "(a*)b + c": Binary("+", Cast("a", 1, b), c),
    "(a*b)": Binary("*", a, b),
    "(a)-b": Binary("-", a, b),
    # operators
    "a + b * c": Binary("+", a, Binary("*", b, c)),
    "a - b - c": Binary("-", Binary("-", a, b), c),
    "(a - b) * c": Binary("*", Binary("-", a, b), c),
    "a * *p": Binary("*", a, Unary("*", p)),
    "a - -b": Binary("-", a, Unary("-", b)),
    "a & b == c": Binary("&", a, Binary("==", b, c)),
    "a | b ^ c & 1": Binary("|", a, Binary("^", b, Binary("&", c, Integer(1)))),
    "a << 1 < b": Binary("<", Binary("<<", a, Integer(1)), b),
    "a<b == b>=c": Binary("==", Binary("<", a, b), Binary(">=", b, c)),
    "a || b && c": Binary("||", a, Binary("&&", b, c)),
    "!a && ~b": Binary("&&", Unary("!", a), Unary("~", b)),
    "a ? b : c ? 1 : 2": Conditional(a, b, Conditional(c, Integer(1), Integer(2))),
    "a?.5:1": Conditional(a, Real(0.5), Integer(1)),
    "args[0] > 100 && gMode == 2": Binary("&&", Binary(">", Argument(0), Integer(100)), Binary("==", Name("gMode"), Integer(2))),
    "order.total < 4.5": Binary("<", Member(Name("order"), "total"), Real(4.5)),
}


@pytest.mark.parametrize("text", TREES)
def test_tree(text: str) -> None:
    assert parse(text).root == TREES[text]


@pytest.mark.parametrize("text", TREES)
def test_prints_and_reads_back(text: str) -> None:
    assert parse(show(TREES[text])).root == TREES[text]


@pytest.mark.parametrize("text", TREES)
def test_spans_hold_their_own_text(text: str) -> None:
    for node, _ in walk(parse(text).root):
        assert parse(text[node.span.start : node.span.end]).root == node


# text → position, what the problem or the next step says
ERRORS: dict[str, tuple[int, str]] = {
    "": (0, "is empty"),
    "  ": (2, "is empty"),
    "1 +": (3, "ends here; expected a name"),
    "+": (1, "ends here"),
    "(a": (2, "`(` at offset 0 is not closed"),
    "x[1": (3, "`[` at offset 1 is not closed"),
    "(a, b)": (2, "`,` separates"),
    "a b": (2, "`b` cannot stand here; expected an operator"),
    "a)": (1, "`)` cannot stand here"),
    "a ? b": (5, "`?` at offset 2 is not closed"),
    "a.": (2, "expected a member's name"),
    "a.+": (2, "expected a member's name"),
    "a->::b": (3, "expected a member's name"),
    "std::": (3, "`::` cannot stand here"),
    ":: 5": (3, "expected a name after `::`"),
    "foo()": (3, "call a function"),
    "a.size() > 3": (6, "call a function"),
    "sizeof(x)": (0, "`sizeof` is a type"),
    "() => 1": (3, "JavaScript"),
    "() ": (1, "`)` cannot stand here"),
    "x => x > 1": (2, "JavaScript"),
    "a === 1": (2, "Compare with `==`"),
    "a !== 1": (2, "Compare with `!=`"),
    "a?.b": (1, "`?.` is JavaScript"),
    "a ?? b": (2, "`??` is JavaScript"),
    "gMode = 2": (6, "Compare with `==`"),
    "a += 2": (2, "Write `x + y`"),
    "a <<= 2": (2, "assigns"),
    "a := 2": (2, "assigns"),
    "a++": (1, "`x + 1`"),
    "--a": (0, "`- -x`"),
    "a; b": (1, "ends a statement"),
    "{a}": (0, "opens a block"),
    "a and b": (2, "Write `&&`"),
    "not a": (0, "Write `!`"),
    "a is null": (2, "Write `==`"),
    "(int)x": (1, "Only pointers are cast"),
    "$rip": (0, "gdb"),
    "a # b": (2, "comments"),
    "a `b": (2, "backquote has no partner"),
    "a \u00a0b": (2, "U+00A0"),
    "a + \ud800": (4, "surrogate"),
    '"\\\ud800"': (2, "surrogate"),
    "`\ud800`": (1, "surrogate"),
    '"abc': (0, "never closed"),
    '"a\nb"': (0, "never closed"),
    '"\ud800"': (1, "surrogate"),
    "'ab'": (2, "double quotes"),
    "''": (1, "no character"),
    r'"a\qb"': (2, "no escape"),
    r"'\777'": (1, "at most"),
    r"'\ud800'": (1, "surrogate"),
    r'"\U00110000"': (1, "no such character"),
    "12ab": (0, "is no number"),
    "08": (0, "is no number"),
    "1.2.3": (0, "is no number"),
    "0x": (0, "is no number"),
    "a + 18446744073709551616": (4, "more than 64 bits"),
    "1e999": (0, "too large"),
    "1e39f": (0, "too large"),
    "0x1p99999": (0, "too large"),
    "(" * (NESTING_MAX + 1): (NESTING_MAX, "nested"),
    "-" + " -" * NESTING_MAX + "1": (2 * NESTING_MAX, "nested"),
    "a" + "+a" * (HEIGHT_MAX + 1): (0, "in a row"),
    "a" * (LENGTH_MAX + 1): (LENGTH_MAX, "4097 characters"),
}


@pytest.mark.parametrize("text", ERRORS, ids=lambda text: repr(text[:20]))
def test_error(text: str) -> None:
    position, said = ERRORS[text]
    with pytest.raises(ExpressionError) as raised:
        parse(text)
    error = raised.value
    assert said in f"{error.what} {error.next_step}"
    assert (error.position, error.code) == (position, Code.VALIDATION_ERROR)
    assert error.next_step.endswith(".")
    shown, caret = error.what.splitlines()[-2:]
    assert len(error.what) < 500
    if position < len(text) and text[position].isprintable():
        assert shown[caret.index("^")] == text[position]
    error.what.encode()  # can be sent


def test_error_over_the_wire() -> None:
    with pytest.raises(ExpressionError) as raised:
        parse("gMode == ")
    wire = raised.value.to_wire()
    assert wire["value"] == {"text": "gMode == ", "position": 9, "expected": "a name, a number, a text or `(`"}
    assert wire["what"] == (
        "The expression is wrong at offset 9: the expression ends here; expected a name, a number, a text or `(`.\n  gMode == \n           ^\n"
    )


def test_as_much_as_is_allowed() -> None:
    assert parse("(" * (NESTING_MAX - 1) + "a" + ")" * (NESTING_MAX - 1)).root == a
    assert len(list(walk(parse("a" + "+a" * (HEIGHT_MAX - 1)).root))) == 2 * HEIGHT_MAX - 1
    assert parse("a" * LENGTH_MAX).root == Name("a" * LENGTH_MAX)
