"""Random texts and random trees: nothing but ExpressionError, always an end, and what is printed reads back as it was."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strobe.expression import ExpressionError, Scalar, Unavailable, chain, comparison, evaluate, holds, names, parse, show, template
from strobe.expression.tree import (
    BINARY,
    UNARY,
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
from tests.unit.test_expression_evaluate import world

# What texts of the language are made of, and some of what they are not.
PIECES: list[str] = [
    *BINARY, *UNARY, *"()[].?:,;{}=$#`'\"\\ \n", "->", "::", "=>", "==", "++", "?.", " ", " ", " ",
    "order", "items", "gMode", "list", "next", "->next", ".price", "color", "Green", "nothing", "wild", "buffer", "grid", "gone", "args", "args[0]", "ret",
    "0", "1", "2", "10", "0x7fffffffffffffff", "18446744073709551615", "63", "64", "4.5", "1e308", "'a'", '"bolt"', '"', "null", "true", "and", "int",
    "(int*)", "(struct Order*)", "a<", "vector<int>::npos", "<int>", ">::", ">>", "@3", "@70000", "`x`", "é", "\x00", "\ud800", "𝒳",
]  # fmt: skip


def read_all(text: str) -> bool:
    """Everything there is to do with a text. Was it an expression?"""
    try:
        template(text)
    except ExpressionError as error:
        assert 0 <= error.position <= len(text)
    try:
        expression = parse(text)
    except ExpressionError as error:
        assert 0 <= error.position <= len(text)
        error.what.encode()
        return False
    scope = world()
    outcome = evaluate(expression, scope)
    if isinstance(outcome, Unavailable):
        assert 0 <= outcome.span.start < outcome.span.end <= len(text)
    elif isinstance(outcome, Scalar) and isinstance(outcome.value, int) and "wide" not in text:
        assert -(2**63) <= outcome.value < 2**64
    assert holds(expression, scope) in (True, False) or isinstance(holds(expression, scope), Unavailable)
    assert scope.called <= 6 * len(text)
    names(expression), chain(expression), comparison(expression)
    for node, _ in walk(expression.root):
        assert 0 <= node.span.start < node.span.end <= len(text)
    assert parse(show(expression.root)).root == expression.root
    return True


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=60))
def test_any_text(text: str) -> None:
    read_all(text)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_any_pieces(text: str) -> None:
    read_all(text)


FORMS = ["{0} {op} {1}", "{0} {op} {1}", "({0})", "{un}{0}", "{0}[{1}]", "{0}.price", "{0}->next", "{0} ? {1} : {2}", "(Item*){0}", "{0}@{1}"]


def grown(pick: random.Random, depth: int) -> str:
    """A text that is mostly right."""
    if depth == 0 or pick.random() < 0.2:
        return pick.choice(PIECES[-45:] if pick.random() < 0.9 else PIECES)
    inner = [grown(pick, depth - 1) for _ in range(3)]
    form: str = pick.choice(FORMS)
    return form.format(*inner, op=pick.choice([*BINARY]), un=pick.choice(UNARY))


@pytest.mark.parametrize("count", [10_000, pytest.param(100_000, marks=pytest.mark.full)])
def test_many_expressions(count: int) -> None:
    seed = random.SystemRandom().randrange(2**32)
    pick = random.Random(seed)
    read = 0
    for number in range(count):
        text = grown(pick, 4) if number % 4 else "".join(pick.choices(PIECES, k=pick.randrange(40)))
        try:
            read += read_all(text)
        except Exception as error:
            raise AssertionError(f"seed {seed}, text {text!r}") from error
    assert read > count // 10, f"seed {seed}: too few of the texts were expressions"


@pytest.mark.parametrize(
    "unit", ["a<", "a<b,", "(", "-", "a.", "a?", "a?b:", "a[", "(a*)", "((", "a<a<a>::a<", "::a", "{a}", "'", '"\\', "1e", "a&&", "`", "0x", "*", "a->b[1]."]
)
def test_the_longest_texts_end_at_once(unit: str) -> None:
    for text in ((unit * 4096)[:4096], (unit * 4096)[:4095] + "a", "a" + (unit * 4096)[:4095]):
        read_all(text)


IDENTIFIERS = st.from_regex(r"[a-z_][a-z0-9_]{0,5}", fullmatch=True)
ODD_NAMES = st.text(st.characters(exclude_characters="`\n", exclude_categories=["Cs"]), min_size=1, max_size=8)
NAMES = st.one_of(
    IDENTIFIERS, st.sampled_from(["args", "ret", "true", "int", "not", "::x", "a::b", "a<b>::c", "(anonymous namespace)::n", "<T as U>::V"]), ODD_NAMES
)
MEMBERS = st.one_of(IDENTIFIERS, st.sampled_from(["0", "12", "Base::x", "true"]), ODD_NAMES)
CHARACTERS = st.one_of(st.integers(-128, -1), st.characters(exclude_categories=["Cs"]).map(ord))
TYPES = st.one_of(st.sampled_from(["int", "unsigned long", "struct foo", "ns::T", "::T", "std::vector<int, a::b>", "T<int>::U"]), ODD_NAMES)
LEAVES: st.SearchStrategy[Node] = st.one_of(
    st.builds(Integer, st.integers(0, 2**64 - 1), st.booleans()),
    st.builds(Character, CHARACTERS),
    st.builds(Real, st.floats(min_value=0, allow_nan=False, allow_infinity=False)),
    st.builds(Text, st.one_of(st.text(st.characters(exclude_categories=["Cs"])), st.binary().map(lambda raw: raw.decode("utf-8", "surrogateescape")))),
    st.builds(Truth, st.booleans()),
    st.just(Null()),
    st.builds(Name, NAMES),
    st.builds(Argument, st.one_of(st.integers(0, 2**64 - 1), IDENTIFIERS)),
    st.just(Result()),
)


def joined(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    return st.one_of(
        st.builds(Member, inner, MEMBERS, st.booleans()),
        st.builds(Index, inner, inner),
        st.builds(Array, inner, inner),
        st.builds(Cast, TYPES, st.integers(1, 3), inner),
        st.builds(Unary, st.sampled_from(UNARY), inner),
        st.builds(Binary, st.sampled_from([sign for sign in BINARY if sign != "@"]), inner, inner),
        st.builds(Conditional, inner, inner, inner),
    )


@settings(max_examples=600, deadline=None)
@given(st.recursive(LEAVES, joined, max_leaves=14))
def test_a_printed_tree_reads_back(tree: Node) -> None:
    assert parse(show(tree)).root == tree
