"""Replies as text: what they say, and that they stay within maxTokens."""

from __future__ import annotations

import random
from typing import Any

import bpe_openai
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strobe.render.budget import compact_json, estimate_tokens, fit_lists, json_tokens, reply_tokens
from strobe.render.events import event_lines, line_tokens, lines_of, query_text
from strobe.render.session import launch_text, session_text, trace_text
from strobe.render.table import align
from strobe.render.values import duration, moment, plain

O200K = bpe_openai.get_encoding("o200k_base")


def call_event(number: int, *, verbose: bool = False) -> dict[str, Any]:
    event: dict[str, Any] = {
        "id": f"hello-2026-11-21-23h40-{number}", "timestampNs": 1_000_003 * number, "eventType": "function_exit" if number % 2 else "function_enter",
        "function": "ledger::Account<int>::transfer_all", "sourceFile": "/home/me/project/src/ledger.cpp", "line": 41, "durationNs": 66_012,
        "returnType": "int",
    }  # fmt: skip
    if verbose:
        arguments = [{"name": "from", "type": "Account *", "value": "0x55d0c2a3f2a0"}, {"name": "cents", "type": "long", "value": -333}]
        event |= {"functionRaw": "_ZN6ledger7AccountIiE12transfer_allEv", "threadId": 4711, "threadName": "worker-3", "pid": 4700, "arguments": arguments}
    return event


def page(events: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {"events": events, "totalCount": len(events), "hasMore": False, "lastEventId": "e9", "settledUntilNs": 5, **more}


def output_event(text: str) -> dict[str, Any]:
    return {"id": "e1", "timestampNs": 12, "eventType": "stdout", "text": text}


@pytest.mark.parametrize("verbose", [False, True])
def test_estimate_is_not_below_the_tokenizer_on_replies(verbose: bool) -> None:
    wire = page([call_event(number, verbose=verbose) for number in range(60)], cursor="eyJ0IjoxMjM0NTY3ODkwLCJpIjoiZTE3MyJ9")
    for text in (compact_json(wire), query_text(wire)):
        exact = len(O200K.encode(text))
        assert exact <= estimate_tokens(text) <= 2 * exact


@pytest.mark.parametrize("verbose", [False, True])
def test_events_measured_one_by_one_are_not_below_the_whole(verbose: bool) -> None:
    texts = ("a", "två\n", "x" * 900, "7" * 40, "if (x) { return; } " * 9)
    events = [call_event(number, verbose=verbose) for number in range(60)] + [output_event(text) for text in texts]
    events += [{**events[0], "pid": 5}, {**events[1], "pid": 6, "textLeftOut": 12_345}]
    for some in ([event] for event in events):
        assert len(O200K.encode(event_lines(some)[0] + "\n")) <= line_tokens(some)[0]
        assert len(O200K.encode(compact_json(some[0]) + ",")) <= json_tokens(some[0]) + 1
    assert len(O200K.encode("\n".join(event_lines(events)))) <= sum(line_tokens(events)) <= 2.5 * len(O200K.encode("\n".join(event_lines(events))))
    assert estimate_tokens("\n".join(event_lines(events))) <= sum(line_tokens(events))


def test_lines_of_views_are_measured_with_their_heading() -> None:
    row = {"function": "f", "calls": 3, "totalNs": 5000, "selfNs": 4000, "meanNs": 1000, "maxNs": 2000}
    text = "\n".join(lines_of([row, row]))
    assert len(lines_of([row, row])) == 3
    costs = line_tokens([row, row])
    assert len(costs) == 2 and costs[0] > costs[1] and len(O200K.encode(text)) <= sum(costs)
    assert line_tokens([]) == []


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=40),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4),
        max_leaves=12,
    )
)
@settings(max_examples=150, deadline=None)
def test_json_is_measured_by_its_fields(value: Any) -> None:
    assert json_tokens(value) >= 0.9 * estimate_tokens(compact_json(value)) - 3


@given(st.text(alphabet=st.characters(max_codepoint=0x2FFF, exclude_categories=("Cs", "Cc")), max_size=400))
@settings(max_examples=150, deadline=None)
def test_estimate_is_not_below_the_tokenizer_on_any_text(text: str) -> None:
    """Control characters are escaped in both forms of a reply; text of nothing but rare signs may cost more than estimated."""
    assert len(O200K.encode(text)) <= 2 * estimate_tokens(text) + 8


def test_estimate_holds_for_hexadecimal_and_base64() -> None:
    source = random.Random(4)
    for alphabet in ("0123456789abcdef", "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"):
        text = "".join(source.choice(alphabet) for _ in range(4000))
        assert len(O200K.encode(text)) <= 1.2 * estimate_tokens(text)


def test_fit_lists_cuts_whole_items_and_counts_them() -> None:
    reply: dict[str, Any] = {
        "mode": "pending",
        "activePatterns": [f"namespace{n}::function{n}" for n in range(2000)],
        "hookedFunctions": 0,
        "activeWatches": [],
        "eventLimit": 9,
        "status": "ok",
    }
    cut, text = fit_lists(reply, ("activePatterns",), trace_text, 500)
    assert reply_tokens(cut, text) <= 500
    assert cut["activePatterns"] == reply["activePatterns"][: len(cut["activePatterns"])]
    assert cut["leftOut"]["activePatterns"] == 2000 - len(cut["activePatterns"]) > 0
    assert f"{cut['leftOut']['activePatterns']:,} of activePatterns" in text
    one_more = {**cut, "activePatterns": reply["activePatterns"][: len(cut["activePatterns"]) + 1]}
    assert reply_tokens(one_more, trace_text(one_more)) > 500


def test_fit_lists_leaves_a_fitting_reply_alone() -> None:
    reply = {"sessions": [], "warnings": ["one"]}
    assert fit_lists(reply, ("warnings", "sessions"), session_text, 4000) == (reply, session_text(reply))


def test_calls_show_arguments_result_duration_and_place() -> None:
    event = {**call_event(1, verbose=True), "returnValue": 7}
    (line,) = event_lines([event])
    assert line == "1  +0.001000  exit  ledger::Account<int>::transfer_all(from=0x55d0c2a3f2a0, cents=-333)  = 7  took 66 µs  ledger.cpp:41"


def test_output_is_one_line_per_event_and_unambiguous() -> None:
    (line,) = event_lines([output_event('two\nlines "and" a tab\t')])
    assert line.endswith(r'stdout  "two\nlines \"and\" a tab\t"')


def test_several_processes_are_told_apart() -> None:
    lines = event_lines([{**output_event("a"), "pid": 7}, {**output_event("b"), "pid": 8}])
    assert "[7]" in lines[0]
    assert "[8]" in lines[1]


def test_query_text_tells_total_cursor_and_losses() -> None:
    text = query_text(
        {
            **page([call_event(1)]),
            "totalCount": 1200,
            "cursor": "abc",
            "eventsDropped": {"lane full": 12, "evicted": 0},
            "crash": {"signal": "SIGSEGV", "function": "push"},
        }
    )
    assert "1 of 1,200 events." in text
    assert "cursor=abc" in text
    assert "Lost: 12 lane full" in text
    assert "evicted" not in text
    assert "crash: SIGSEGV in push" in text


def test_rows_of_sql_are_a_table() -> None:
    text = query_text({"columns": ["function", "n"], "rows": [["push", 12], [None, 3]], "hasMore": True})
    assert text.splitlines()[:3] == ["function  n", "push      12", "          3"]
    assert "More rows" in text


def tree_row(number: int, depth: int, **more: Any) -> dict[str, Any]:
    return {"id": f"s-{number}", "depth": depth, "function": f"f{number}", "timestampNs": number, **more}


def test_a_call_tree_is_indented_and_tells_open_calls() -> None:
    rows = [tree_row(2, 0), tree_row(4, 1, durationNs=1500, sourceFile="/a/b.c", line=7), tree_row(6, 0, threadId=9, durationNs=5)]
    assert query_text(page(rows)).splitlines()[:3] == [
        "2  +0.000000  f2      not left",
        "4  +0.000000    f4    1.5 µs    b.c:7",
        "6  +0.000000  [9] f6  5 ns",
    ]


def test_hotspots_and_summary_are_tables() -> None:
    hot = [{"function": "push", "calls": 1200, "totalNs": 5000, "selfNs": 4000, "meanNs": 4, "maxNs": 900}]
    assert query_text(page(hot)).splitlines() == ["calls  total  self  mean     max  function", "1,200   5 µs  4 µs  4 ns  900 ns  push", "1 function."]
    assert query_text(page([{**hot[0], "recorded": 12}])).splitlines()[1].split("  ")[0] == "1,200 (12 recorded)"
    rows = [{"eventType": "stdout", "count": 3, "firstNs": 0, "lastNs": 2_000_000_000}]
    assert query_text({**page(rows), "totalCount": 3}).splitlines() == ["3  stdout  +0.000000  to  +2.000000", "3 events in all."]


def test_launch_text_holds_limits_and_next_steps() -> None:
    can = {"runtime": "native", "functionTracing": "none", "outputCapture": "full", "limitations": ["32-bit program: not traced"]}
    text = launch_text({"sessionId": "s", "pid": 7, "capabilities": can, "nextSteps": ["debug_query {}"], "warnings": ["found on PATH"]})
    assert text.splitlines() == [
        "Session s, pid 7.", "native: tracing none, output full.", "Limit: 32-bit program: not traced", "Note: found on PATH", "Next: debug_query {}",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 ns"),
        (999, "999 ns"),
        (1000, "1 µs"),
        (66_012, "66 µs"),
        (1_250, "1.25 µs"),
        (12_000_000, "12 ms"),
        (3_210_000_000, "3.21 s"),
        (7_200_000_000_000, "7200 s"),
    ],
)
def test_durations(ns: int, text: str) -> None:
    assert duration(ns) == text


def test_moments_and_values() -> None:
    assert moment(1_000_250_999) == "+1.000251"
    assert moment(-5_000) == "-0.000005"
    assert plain("0x7f") == "0x7f"
    assert plain("<Type at 0x1>") == "<Type at 0x1>"
    assert plain('say "x"') == '"say \\"x\\""'
    assert plain(None) == "null"


def test_align() -> None:
    assert align([["a", "bb", "c"], ["aaa", "b"]], right=(1,)) == ["a    bb  c", "aaa   b"]
    assert align([]) == []
