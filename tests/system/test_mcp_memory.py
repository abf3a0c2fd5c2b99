"""debug_memory through `strobe mcp`: programs in C, C++ and Rust read and written while they run. Polls: test_mcp_memory_polls."""

from __future__ import annotations

import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness.mcp import ToolError, strobe_mcp
from tests.harness.memory_client import Running, c_program, started
from tests.harness.targets import program

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
async def shared_home(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Path]:
    home = tmp_path_factory.mktemp("memory") / "home"
    async with strobe_mcp(home):
        yield home


def cpp_program() -> Path:
    library = program("memory/library.c", "-O0", "-shared", "-fPIC", name="libthings.so")
    return program("memory/things.cpp", "-O0", "-Wl,--no-as-needed", str(library), f"-Wl,-rpath,{library.parent}")


@pytest.fixture(scope="module")
async def c(shared_home: Path) -> AsyncIterator[Running]:
    """For tests that leave it as it is, which is looked at in the end."""
    async with started(shared_home, c_program()) as running:
        yield running
        assert await running.read("gTempo", "gConst", "gFlags.level", "gByte", "gLabel", "gLocal") == [120, 42, 17, 200, "hello", 1000]


@pytest.fixture
async def fresh(shared_home: Path) -> AsyncIterator[Running]:
    async with started(shared_home, c_program()) as running:
        yield running


@pytest.fixture(scope="module")
async def cpp(shared_home: Path) -> AsyncIterator[Running]:
    async with started(shared_home, cpp_program()) as running:
        yield running


@pytest.fixture(scope="module")
async def rust(shared_home: Path) -> AsyncIterator[Running]:
    async with started(shared_home, program("memory/things.rs")) as running:
        yield running


async def test_variables_of_a_c_program(c: Running) -> None:
    names = ["gTempo", "gByte", "gLetter", "gOn", "gRatio", "gTotal", "gLong", "gBig", "gColor", "gAccess", "gFlags", "gLabel", "gText", "gConst", "gGrid",
    "gAtomic"]
    assert await c.read(*names) == [
        120, 200, "q", True, 1.5, -4.25, 2.5, 18446744073709551615, "GREEN", "ACCESS_READ|ACCESS_RUN",
        {"ready": 1, "level": 17, "delta": -3, "shade": "BLUE", "sure": False}, "hello", "a text in read-only memory", 42, [[1, 2, 3], [4, 5, 6]], 7,
    ]  # fmt: skip
    assert await c.read("*gNumbers@10", "gNumbers[3]", "gOrders[3].items[1].price", "gOrders[3].list->next->value", "gGrid[1][2]", "gFlags.delta",
    "gOrder.items[2].name") == [
        [0, 1, 4, 9, 16, 25, 36, 49, 64, 81], 9, 0.25, 2, 6, -3, "screw",
    ]  # fmt: skip
    assert await c.read("counted::calls", "calls", "`globals.c::fileStatic`", "gTempo * 2 + 1", "gColor == GREEN", "gNothing") == [4, 4, 99, 241, True, None]
    (handler,) = await c.read("gHandler")
    assert handler.endswith(" <puts>") or handler.startswith("<function at 0x")


async def test_structs_to_depth(c: Running) -> None:
    order = {"number": 77, "items": [{"id": 1, "name": "bolt", "price": 0.5}, {"id": 2, "name": "nut", "price": 0.25}, {"id": 3, "name": "screw",
    "price": 0.125}]}
    (shallow,), (deep,) = await c.read("gOrder"), await c.read("gOrder", depth=3)
    assert {key: shallow[key] for key in order} == order
    assert shallow["color"] == "RED"
    assert shallow["list"]["value"] == 1
    assert shallow["list"]["next"].startswith("<struct node at 0x")
    assert deep["list"]["next"]["next"] == f"<circular ref to {deep['list']['@']}>"
    (ring,) = await c.read("gRing", depth=5)
    assert ring["next"]["next"] == f"<circular ref to {ring['@']}>"


async def test_by_address_and_type(c: Running) -> None:
    order = await c.one(variable="gOrder")
    address = order["address"]
    reply = await c.memory("read", [
        {"address": address, "type": "struct order"}, {"address": address, "type": "i64"}, {"address": int(address, 16), "type": "u8[2]"},
        {"address": address, "type": "item[1]"},
        {"variable": "gLabel", "type": "string"}, {"variable": "gText", "type": "string"}, {"address": address, "type": "f32"},
        {"address": address, "type": "pointer"},
        {"variable": "gTempo", "type": "u8[4]"}, {"variable": "gTempo", "type": "f32"},
    ], maxTokens=20_000)  # fmt: skip
    values = [one["value"] for one in reply["results"]]
    assert values[0] == order["value"]
    assert values[1:3] == [77, [77, 0]]
    assert values[4:6] == ["hello", "a text in read-only memory"]
    assert values[7:9] == ["0x4d", [120, 0, 0, 0]]


async def test_bytes_go_to_a_file_of_the_session_s(c: Running) -> None:
    label, whole, size = await c.one(variable="gLabel", type="bytes"), await c.one(variable="gOrder"), 64
    raw = await c.one(address=whole["address"], size=size)
    assert label["size"] == 16
    assert bytes.fromhex(label["preview"]) == Path(label["file"]).read_bytes() == b"hello".ljust(16, b"\0")
    path = Path(raw["file"])
    assert path.read_bytes()[:8] == (77).to_bytes(8, "little")
    assert path.stat().st_size == raw["size"] == size
    assert len(bytes.fromhex(raw["preview"])) == 32
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert c.strobe.home / "targets" / c.id / "memory" == path.parent
    over = await c.one(variable="gLabel", type="bytes", size=1 << 24)
    assert over["size"] < 1 << 24
    assert "Only" in over["note"]
    assert "out of range" in (await c.one(address="0x10", type="bytes", size=(1 << 24) + 1))["error"]


async def test_each_target_fails_alone(c: Running) -> None:
    targets: list[dict[str, Any]] = [
        {"variable": "gTempo"}, {"variable": "gTempi"}, {"variable": "gOrder.lst"}, {"variable": "*gNothing"}, {"variable": "gGrid[2]"}, {"variable": "line"},
        {"variable": "gTempo +"},
        {"variable": "*gBroken"}, {"address": "0x10", "type": "i32"}, {"variable": "gTempo", "type": "nonsense"}, {"variable": "gLocal", "threadId": 1},
        {"address": "0x1000"},
        {"variable": "gOrder.list->next->next->next"}, {"variable": "gTempo * 2", "type": "i32"}, {"variable": "args[0]"}, {"variable": "gOn"},
    ]  # fmt: skip
    reply = await c.memory("read", targets)
    words = {
        1: "there is `gTempo`", 2: "has no member `lst`; there is `list`", 3: "does not say what it points to", 4: "outside", 5: "a local variable (of main)",
        6: "wrong at offset",
        7: "0x10 cannot be read", 8: "0x10 cannot be read", 9: "no type `nonsense`", 10: "no thread 1", 11: "`size` is missing",
        13: "not in memory", 14: "args",
    }  # fmt: skip
    for index, result in enumerate(reply["results"]):
        assert result["target"] == targets[index].get("variable", targets[index].get("address"))
        if index in words:
            assert words[index] in result["error"], result
            assert result["nextStep"]
        else:
            assert "error" not in result, result
    assert (reply["results"][0]["value"], reply["results"][15]["value"]) == (120, True)


async def test_every_thread_has_its_own(c: Running) -> None:
    (worker,) = await c.read("workerTid")
    assert await c.read("gLocal", "tNode.value") == [1000, 31]
    assert (await c.one(variable="gLocal", threadId=worker))["value"] == 2000
    assert (await c.one(variable="tNode", threadId=worker))["value"] == {"value": 62, "next": None}


async def test_variables_of_a_cpp_program(cpp: Running) -> None:
    assert await cpp.read(
        "shop::orders[3].total", "orders[1].items[2]", "shop::Order::count", "Order::MAX", "version", "hidden", "stock", 'stock["nut"]', "names[6]",
        "owned->items[1]", "shared[2]", "perhaps",
        "never", "queue[2]", "chain[1]", "unique[0]", "title", "brief", "title[3]", "favourite.id", "bottom.depth", "bottom.Base::depth", "sharedCounter",
        "hiddenCounter",
        "orders[0].color == Green", "title == brief", "((shop::Circle*)shape)->radius",
    ) == [
        99.25, 3, 3, 9, 12, 4, {"bolt": 3, "nut": 44}, 44, "six", 2, 8, 6, None, 30, 8, 1, "a title that is too long to be kept inside of the object itself",
        "short", "i", 102, 1, 1, 7, 8,
        True, False, 2.5,
    ]  # fmt: skip
    (shape, favourite) = await cpp.read("shape", "favourite", depth=2)
    assert {**shape, "@": ""} == {"@": "", "class": "shop::Circle", "sides": 0, "radius": 2.5}
    assert favourite == {"id": 102, "total": -4.5, "customer": "Ada", "items": [1, 2, 3], "color": "Green"}
    failed = await cpp.read("orders[9]", 'stock["x"]', "orders.sise")
    assert [words in one["error"] for one, words in zip(failed, ("has 4 elements", 'no key "x"', "no member `sise`"), strict=True)] == [True] * 3


async def test_thread_locals_of_functions_and_libraries(cpp: Running) -> None:
    (worker,) = await cpp.read("workerTid")
    assert await cpp.read("shop::next::calls", "libLocal", "libStatic") == [2, 51, 59]
    for name, value in (("shop::next::calls", 3), ("libLocal", 60), ("libStatic", 50)):
        assert (await cpp.one(variable=name, threadId=worker))["value"] == value


async def test_variables_of_a_rust_program(rust: Running) -> None:
    assert await rust.read(
        "TOTAL", "shop::LEVEL", "things::shop::LEVEL", "ORDERS[1].shape", "ORDERS[1].shape.Rect.w", "ORDERS[0].shape.0", "ORDERS[0].tag", "ORDERS[1].tag",
        "NAME", "LETTER", "TABLE", "TABLE[1]",
        'NAMES["b"]', "DEPTH", "WORDS", "WORDS[0]", "next::COUNTER", "COUNTER", "ORDERS[0].tag == 9",
    ) == [105, -3, -3, {"Rect": {"w": 3, "h": 4}}, 3, 2.5, 9, None, "a shop", "ß", [3, 1, 4], 1, 2, 5, ["hello"], "hello", 101, 101, True]  # fmt: skip


async def test_writes_are_seen_by_the_program(fresh: Running) -> None:
    values = {"gTempo": 90, "gRatio": 2.25, "gLabel": "changed", "gFlags__level": 9, "gFlags__delta": -8, "gTotal": "-inf", "gColor": "BLUE",
    "gOn": False, "gLong": 0.1, "gLocal": 1234}
    results = await fresh.write(**values)
    assert [one["newValue"] for one in results] == list(values.values())
    assert [one["previousValue"] for one in results] == [120, 1.5, "hello", 17, -3, -4.25, "GREEN", True, 2.5, 1000]
    assert "not atomic" in results[3]["note"]
    (grid, calls) = [await fresh.one("write", variable=name, value=value) for name, value in (("gGrid[1][2]", 66), ("counted::calls", 20))]
    assert (grid["previousValue"], grid["newValue"], calls["newValue"]) == (6, 66, 20)
    await fresh.line()
    await fresh.says("gTempo 90 gRatio 2.25 gLabel changed level 9 delta -8 total -inf color -2 grid 66 on 0 long 0.1 calls 21 local 1234")
    assert (await fresh.read("gFlags"))[0] == {"ready": 1, "level": 9, "delta": -8, "shade": "BLUE", "sure": False}


async def test_bytes_texts_and_pointers_are_written(fresh: Running) -> None:
    address = (await fresh.one(variable="gLabel"))["address"]
    written = await fresh.one("write", address=address, type="bytes", value="68690021")
    assert (written["previousValue"], written["newValue"], written["size"]) == ("68656c6c", "68690021", 4)
    assert await fresh.read("gLabel") == ["hi"]
    assert (await fresh.one("write", variable="gLabel", type="string", value="text"))["newValue"] == "text"
    assert (await fresh.one("write", address=address, type="string", size=4, value="abc"))["newValue"] == "abc"
    assert (await fresh.one("write", variable="gNumbers", value=None))["newValue"] is None
    assert (await fresh.one("write", variable="gNumbers", value=address))["newValue"]["@"] == address
    assert (await fresh.one("write", variable="gTempo", type="f32", value=1.5))["newValue"] == 1.5
    assert (await fresh.one("write", address=address, type="u16", value="0x4241"))["newValue"] == 0x4241


@pytest.mark.parametrize(("target", "value", "reason"), [
    ({"variable": "gConst"}, 1, "read-only memory"), ({"variable": "gText[0]"}, "b", "read-only memory"), ({"variable": "gTempo"}, "x", "whole number"),
    ({"variable": "gTempo"}, 1 << 40, "out of range"),
    ({"variable": "gOrder"}, 1, "not written as a whole"), ({"variable": "gFlags.level"}, 32, "of 5 bits holds 0 to 31"), ({"variable": "gColor"}, "PINK",
    "it has RED, GREEN, BLUE"),
    ({"variable": "gLabel"}, "much too long for this array", "room for 15"), ({"variable": "gGrid"}, [1], "element by element"), ({"variable": "gTempo * 2"},
    4, "calculated"),
    ({"variable": "gByte"}, -1, "holds 0 to 255"), ({"variable": "gOn"}, 7, "true or false"), ({"variable": "gBroken[0]"}, "a", "nothing is mapped at 0x10"),
    ({"variable": "nope"}, 1, "no `nope`"),
    ({"address": "0x10", "type": "i32"}, 1, "nothing is mapped"), ({"address": "0x10", "type": "string"}, "a", "how much room"), ({"variable": "gLabel",
    "type": "bytes"}, "00" * 17, "has 16"),
    ({"variable": "gTempo", "type": "bytes"}, "xyz", "hex digits"),
])  # fmt: skip
async def test_writes_that_cannot_be_right(c: Running, target: dict[str, Any], value: Any, reason: str) -> None:
    result = await c.one("write", **target, value=value)
    assert reason in result["error"]
    assert result["nextStep"]
    assert "newValue" not in result


async def test_cpp_writes(cpp: Running) -> None:
    for name, value in (("shop::orders[3].total", 1.25), ("orders[0].items[0]", 41), ("shop::Order::count", 8), ("next::counter", 70),
    ("rising", -50_000_000), ("sharedCounter", 900), ("*shared@1", None)):
        result = await cpp.one("write", variable=name, value=value)
        assert ("error" in result) == (value is None), result
    await cpp.line()
    await cpp.says("count 8 counter 74 total 1.25 first 41 rising -4")
    await cpp.says("shared 900")
    assert "not written as a whole" in (await cpp.one("write", variable="title", value="x"))["error"]
    assert (await cpp.one("write", variable="orders[1].color", value="Red"))["newValue"] == "Red"


async def test_rust_writes(rust: Running) -> None:
    for name, value in (("LEVEL", 30), ("TOTAL", 1), ("ORDERS[0].id", 5), ("ORDERS[1].shape.Rect.w", 10), ("DEPTH", 99), ("TABLE[0]", 7)):
        assert (await rust.one("write", variable=name, value=value))["newValue"] == value
    await rust.line()
    await rust.says("total 1 level 30 id 5 area 40 depth 99 table [7, 1, 4]")
    assert "not written as a whole" in (await rust.one("write", variable="ORDERS[0]", value=1))["error"]


async def test_wrong_calls(c: Running) -> None:
    many: list[dict[str, Any]] = [{"targets": [{"variable": "gTempo"}] * 17}, {"targets": []}, {"targets": [{"variable": "a", "address": "0x1"}]}]
    for wrong in (*many, {"targets": [{"variable": "a"}], "depth": 6}):
        with pytest.raises(ToolError) as refused:
            await c.strobe.call("debug_memory", sessionId=c.id, action="read", **wrong)
        assert refused.value.code == "VALIDATION_ERROR"
    with pytest.raises(ToolError) as unknown:
        await c.strobe.call("debug_memory", sessionId="nobody", action="read", targets=[{"variable": "a"}])
    assert unknown.value.code == "SESSION_NOT_FOUND"


async def test_former_names(fresh: Running) -> None:
    read = await fresh.strobe.call("debug_read", sessionId=fresh.id, targets=[{"variable": "gTempo"}])
    assert read["results"][0]["value"] == 120
    written = await fresh.strobe.call("debug_write", sessionId=fresh.id, targets=[{"variable": "gTempo", "value": 5}])
    assert written["results"][0]["newValue"] == 5


async def test_a_reply_stays_within_its_tokens(c: Running) -> None:
    from strobe.render.budget import reply_tokens  # only here

    result = await c.strobe.client.call_tool(
        "debug_memory", {"sessionId": c.id, "targets": [{"variable": "*gOrders@4"}, {"variable": "*(u8*)gNumbers@100"},
        {"variable": "gTempo"}], "depth": 4, "maxTokens": 700}
    )  # fmt: skip
    structured = result.structured_content or {}
    assert reply_tokens(structured, "".join(getattr(part, "text", "") for part in result.content)) <= 700
    assert structured["results"][0]["shortened"] is True
    assert structured["results"][2]["value"] == 120


async def test_while_it_is_traced(fresh: Running) -> None:
    traced = await fresh.strobe.call("debug_trace", sessionId=fresh.id, add=["counted"])
    assert traced["hookedFunctions"] == 1
    assert await fresh.read("gTempo", "gLocal", "calls") == [120, 1000, 4]
    assert (await fresh.one("write", variable="gTempo", value=60))["newValue"] == 60


@pytest.mark.parametrize("flags", [("-static",), ("-g0",), ("-no-pie",)], ids=["static", "no-debug-info", "no-pie"])
async def test_other_builds(shared_home: Path, flags: tuple[str, ...]) -> None:
    async with started(shared_home, c_program(*flags)) as running:
        plain = await running.one(variable="gTempo")
        if "-g0" in flags:
            assert "known by its symbol alone of 4 bytes" in plain["error"]
            assert (await running.one(variable="gTempo", type="i32"))["value"] == 120
            assert (await running.one("write", variable="gTempo", type="i32", value=9))["newValue"] == 9
            assert (await running.one(variable="gLocal", type="i32"))["value"] == 1000
        else:
            assert plain["value"] == 120
            assert await running.read("gLocal", "gOrders[3].label") == [1000, "box"]
