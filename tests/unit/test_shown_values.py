"""Values of a page on their way into a reply: what is cut, what is said about it, functions by name."""

from __future__ import annotations

from typing import Any

from actors.gateway.shown_values import named, part_of, share_of, shortened
from strobe.render.budget import json_tokens


def event(**values: Any) -> dict[str, Any]:
    return {"id": "s-7", "arguments": [{"name": name, "type": "T", "value": value} for name, value in values.items()]}


def test_events_within_their_share_stay_as_they_are() -> None:
    events = [event(a=1, b={"x": [1, 2]}), {"id": "s-8", "text": "x" * 5000}]
    assert shortened(events, 80) == (events, None)


def test_what_is_cut_can_be_asked_for() -> None:
    large = {"rows": list(range(900))}
    done, said = shortened([event(a=1, order=large), {**event(a=2), "returnValue": large, "watchValues": {"w": large}}], 120)
    assert said is not None and 'eventId="s-7"' in said and 'path="order"' in said
    assert done[0]["arguments"][0]["value"] == 1 and json_tokens(done[0]["arguments"][1]["value"]) <= 120
    assert json_tokens(done[1]["returnValue"]) + json_tokens(done[1]["watchValues"]) <= 140
    _, said = shortened([{"id": "s-9", "watchValues": {"w": large}}], 60)
    assert said is not None and 'eventId="s-9"' in said and "path" not in said


def test_a_page_shares_its_room() -> None:
    assert share_of(4000, 1) == 2000 and share_of(4000, 500) == 250 and share_of(500, 50) == 80


def test_functions_get_their_names_wherever_they_are() -> None:
    value = {"f": "<function at 0x10>", "all": ["<function at 0x20>", "<function at 0x10> "], "n": 5}
    assert named(value, {0x10: "handler"}) == {"f": "0x10 <handler>", "all": ["<function at 0x20>", "<function at 0x10> "], "n": 5}
    assert named(value, {}) is value


def test_a_list_is_shown_as_far_as_it_fits_and_goes_on_behind() -> None:
    part = part_of([*range(300), "… 50 more"], "order.items[20..]", "order.items[320..]", 200)
    shown = len(part.value) - 1
    assert part.value[:-1] == list(range(shown)) and part.value[-1] == f"… {350 - shown} more"
    assert part.cut and part.next_path == f"order.items[{20 + shown}..]" and json_tokens(part.value) <= 200
    assert part_of([1, 2, "… 5 more"], "p", "p[2..]", 200) == part_of([1, 2, "… 5 more"], "p", "p[2..]", 900)
    whole = part_of({"a": 1}, "p", None, 200)
    assert (whole.value, whole.next_path, whole.cut, whole.notes) == ({"a": 1}, None, False, [])
    deep = part_of({"a": {"b": list(range(900))}}, "p", None, 60)
    assert deep.cut and deep.notes
