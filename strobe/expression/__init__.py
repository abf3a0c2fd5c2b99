"""Strobe's expression language: what watches, memory targets, conditions and log messages read. README.md is its reference.

    expression = parse("order->total > 4.5 && mode == \"live\"")     # ExpressionError says what is wrong, and where
    names(expression), chain(expression), comparison(expression)     # what it needs; is it a plain path; are they plain comparisons
    evaluate(expression, scope), holds(expression, scope)            # Unavailable says why there is no value, and where
    template("total={order->total}").parts                           # texts and expressions

Pure: a `Scope` (world.py) knows the target.
"""

from strobe.expression.cursor import NESTING_MAX
from strobe.expression.errors import ExpressionError
from strobe.expression.evaluate import evaluate, holds
from strobe.expression.lexer import LENGTH_MAX
from strobe.expression.parser import HEIGHT_MAX, parse
from strobe.expression.paths import Chain, Comparison, Step, Use, chain, comparison, names
from strobe.expression.printer import show
from strobe.expression.template import Literal, Template, template
from strobe.expression.tree import Argument, Expression, Name, Result, Span
from strobe.expression.world import COUNT_MAX, Outcome, Scalar, Scope, Unavailable, Value

__all__ = [
    "COUNT_MAX",
    "HEIGHT_MAX",
    "LENGTH_MAX",
    "NESTING_MAX",
    "Argument",
    "Chain",
    "Comparison",
    "Expression",
    "ExpressionError",
    "Literal",
    "Name",
    "Outcome",
    "Result",
    "Scalar",
    "Scope",
    "Span",
    "Step",
    "Template",
    "Unavailable",
    "Use",
    "Value",
    "chain",
    "comparison",
    "evaluate",
    "holds",
    "names",
    "parse",
    "show",
    "template",
]
