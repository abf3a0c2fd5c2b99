"""What can be told of an expression without evaluating it: its names, its path, its comparisons; and log messages."""

from __future__ import annotations

import pytest

from strobe.expression import ExpressionError, Literal, Scalar, Unavailable, chain, comparison, evaluate, names, parse, template
from strobe.expression.printer import show
from tests.unit.test_expression_evaluate import number, world

NAMES: dict[str, list[str]] = {  # `?`: may be an enumerator
    "1 + 2": [],
    "gMode": ["gMode"],
    "args[0] > 100 && gMode == 2": ["args[0]", "gMode?"],
    "a->b.c[i] + a": ["a", "i"],
    "state == Running || state == ns::Done": ["state?", "Running?", "ns::Done?"],
    "a == b && a": ["a", "b?"],
    "ret->size ? args.x : `args`": ["ret", "args.x", "`args`"],
    "(T*)p": ["p"],
    "*p@n": ["p", "n"],
}


@pytest.mark.parametrize("text", NAMES)
def test_names(text: str) -> None:
    uses = names(parse(text))
    assert [show(use.root) + "?" * use.enumerator for use in uses] == NAMES[text]
    assert all(text[use.span.start : use.span.end] == show(use.root) for use in uses)


# text → root, steps, dereferences shown, at most
CHAINS: dict[str, tuple[str, list[str], int, int] | None] = {
    "gMode": ("gMode", [], 0, 0),
    "a->b.c[3]": ("a", ["follow", "member b", "member c", "index 3"], 1, 3),
    "a->b->c->d->e": ("a", ["follow", "member b", "follow", "member c", "follow", "member d", "follow", "member e"], 4, 4),
    "**p": ("p", ["follow", "follow"], 2, 2),
    "(*p).x": ("p", ["follow", "member x"], 1, 1),
    "*p.x": ("p", ["member x", "follow"], 1, 2),
    "args[0].rate": ("args[0]", ["member rate"], 0, 1),
    "this->x": ("this", ["follow", "member x"], 1, 1),
    "a[-1]": ("a", ["index -1"], 0, 1),
    "a[2 * 3]": ("a", ["index 6"], 0, 1),
    'm["k"]': ("m", ["index k"], 0, 1),
    "ret.0": ("ret", ["member 0"], 0, 1),
    "p->0": ("p", ["follow", "member 0"], 1, 1),
    "a[i]": None,
    "a[1.5]": None,
    "a[1 / 0]": None,
    "a[(T*)1]": None,
    "a + 1": None,
    "&a": None,
    "*p@3": None,
    "5": None,
    "(T*)5": None,
    "((T*)5)->x": None,
}


@pytest.mark.parametrize("text", CHAINS)
def test_chain(text: str) -> None:
    found = chain(parse(text))
    shown = found and (
        show(found.root),
        [step.kind if step.key is None else f"{step.kind} {step.key}" for step in found.steps],
        found.dereferences,
        found.dereferences_max,
    )
    assert shown == CHAINS[text]
    assert found is None or found.span == (0, len(text))


COMPARISONS: dict[str, list[tuple[str, str, Scalar]] | None] = {
    "args[0] > 100 && gMode == 2": [("args[0]", ">", Scalar(100)), ("gMode", "==", Scalar(2))],
    "order.total < 4.5": [("order", "<", Scalar(4.5))],
    "100 < a && (b != null && c >= -1)": [("a", ">", Scalar(100)), ("b", "!=", Scalar(None)), ("c", ">=", Scalar(-1))],
    "a == 10 * 1024": [("a", "==", Scalar(10240))],
    "a <= 5ull": [("a", "<=", Scalar(5, unsigned=True))],
    'name == "x"': [("name", "==", Scalar("x"))],
    "a && !b.c": [("a", "!=", Scalar(0)), ("b", "==", Scalar(0))],
    "a == 1 || b == 2": None,
    "a == b": None,
    "a + 1 == 2": None,
    "a == 1 / 0": None,
    "1 == 1": None,
    "!(a == 1)": None,
    "a & 4": None,
}


@pytest.mark.parametrize("text", COMPARISONS)
def test_comparison(text: str) -> None:
    found = comparison(parse(text))
    assert (found and [(show(one.chain.root), one.operator, one.constant) for one in found]) == COMPARISONS[text]


@pytest.mark.parametrize("text", ["args[1] > 100 && gMode == 2", "!nothing && gTempo", "250 >= args[1]", "!gMode"])
def test_comparisons_mean_what_the_expression_means(text: str) -> None:
    """Each is evaluated as it was taken apart."""
    found = comparison(parse(text))
    assert found
    parts = [f"{text[one.chain.span.start : one.chain.span.end]} {one.operator} {one.constant.value}" for one in found]
    assert number(evaluate(parse(" && ".join(parts)), world())) == bool(number(evaluate(parse(text), world())))


TEMPLATES: dict[str, list[str]] = {
    "": [],
    "plain": ["plain"],
    "tempo={gTempo} rate={args[0].id}": ["tempo=", "{gTempo}", " rate=", "{args[0].id}"],
    "{gMode}{ gMode + 1 }": ["{gMode}", "{gMode + 1}"],
    "{{{gMode}}} {{}}": ["{", "{gMode}", "} {}"],
    "{order.name == \"}\"}|{'}'}": ['{order.name == "}"}', "|", "{'}'}"],
    "é\n{gMode ? 1 : 2}": ["é\n", "{gMode ? 1 : 2}"],
}


@pytest.mark.parametrize("text", TEMPLATES)
def test_template(text: str) -> None:
    parts = template(text).parts
    assert [part.text if isinstance(part, Literal) else f"{{{part.source}}}" for part in parts] == TEMPLATES[text]
    assert [part for part in parts if not isinstance(part, Literal)] == list(template(text).expressions)
    for part in template(text).expressions:
        assert parse(part.source).root == part.root


def test_places_are_those_of_the_whole_message() -> None:
    message = "total={order.total}, mode={gMode}"
    outcome = evaluate(template(message).expressions[0], world())
    assert isinstance(outcome, Unavailable)
    assert message[outcome.span.start : outcome.span.end] == "order.total"


TEMPLATE_ERRORS: dict[str, tuple[int, str]] = {
    "a {": (3, "is empty"),
    "a {}": (3, "is empty"),
    "a {b": (2, "never closed"),
    "a } b": (2, "closes nothing"),
    "a {b}} c": (5, "closes nothing"),
    "rate={args[0}": (12, "not closed"),
    "rate={f()}": (7, "call"),
    "n={a; b}": (4, "statement"),
    "{a} {b c}": (7, "cannot stand here"),
    "{a {b} }": (3, "block"),
    "x" * 4097: (4096, "4097 characters"),
}


@pytest.mark.parametrize("text", TEMPLATE_ERRORS, ids=lambda text: repr(text[:20]))
def test_template_error(text: str) -> None:
    position, said = TEMPLATE_ERRORS[text]
    with pytest.raises(ExpressionError) as raised:
        template(text)
    assert raised.value.position == position
    assert said in raised.value.what
