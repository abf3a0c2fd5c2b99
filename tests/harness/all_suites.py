"""The suites of the conformance tests, one a framework."""

from __future__ import annotations

from typing import Any, Final

from tests.harness.cpp_suites import built
from tests.harness.javascript_suites import JAVASCRIPT
from tests.harness.nextest import nextest_folder
from tests.harness.suites import Suite

NOT_HERE: Final = {
    "spin": "its tests' beginning is told before they run, whatever they do: `hang` is the same", "late": "its process ends with its tests",
    "after": "its hooks are tests' own code, and hang within a test",
}  # fmt: skip
ONE_PROGRAM: Final = {"pids": "its tests share the process of their program", "apart": "its tests share the process of their program"}
NO_STACK: Final = {"stack": "it tells a place, and no stack"}
NO_RETRIES: Final = {"retried": "it has no retries"}
ODD: Final = ("says \"hi\" and it's fine", "ünï ☃ 雪", "a [b] (c) {d} $1 ^*+?.|\\ x")

PYTEST: Final = Suite(
    "pytest", "pytest", ("pytest.ini", "shop.py"),
    {
        "suite": ("test_suite.py",), "names": ("test_names.py",), "hang": ("test_hang.py",), "crash": ("test_crash.py",),
        "broken": ("test_broken.py", "test_suite.py"), "empty": (), "parallel": ("test_left.py", "test_right.py"),
    },
    {
        "adds": ("test_suite.py::TestMath::test_adds",), "fails": ("test_suite.py::TestMath::test_fails_here",),
        "skipped": ("test_suite.py::TestMath::test_left_out",), "pair": ("test_suite.py::TestMath::test_pair[1-2]", "test_suite.py::TestMath::test_pair[3-4]"),
        "prints": ("test_suite.py::test_prints_look_alikes",), "quick": ("test_hang.py::test_quick", "test_crash.py::test_quick"),
        "hangs": ("test_hang.py::test_never_ends",), "dies": ("test_crash.py::test_dies",),
        "odd": tuple(f"test_names.py::test_odd[{name.encode('unicode_escape').decode()}]" for name in (*ODD, "comma, semi; colon:: and/slash")),
        "meet": ("test_left.py::test_meets_on_the_left", "test_right.py::test_meets_on_the_right"),
    },
    failing=("shop.py", 'raise ValueError("4 is not 3")'), no_match=("test_addds", "test_adds"), trace="**.checked",
    cannot={**NOT_HERE, "retried": "a plugin's (pytest-rerunfailures), which is not among what the tests install"}, file="test_names.py",
    parallel="python -m pytest -n 2 -p no:cacheprovider",
)  # fmt: skip


def rust(framework: str, folder: str, common: tuple[str, ...] = (), **more: Any) -> Suite:
    return Suite(
        framework, folder, ("Cargo.toml", *common),
        {role: (f"{role}.rs as src/lib.rs",) for role in ("suite", "names", "hang", "crash", "parallel")}
        | {"broken": ("suite.rs as src/lib.rs", "broken.rs as tests/broken.rs"), "empty": ("empty.rs as src/lib.rs",)},
        {
            "adds": ("tests::adds",), "fails": ("tests::fails_here",), "skipped": ("tests::left_out",), "pair": ("tests::pair_1_2", "tests::pair_3_4"),
            "prints": ("tests::prints_look_alikes",), "quick": ("quick",), "hangs": ("slow_never_ends",), "dies": ("dies",),
            "odd": ("ünï::größe", "ünï::strange_ñame"), "meet": ("meets_left", "meets_right"),
        },
        failing=("src/lib.rs", 'panic!("4 is not 3")'), no_match=("tests::addds", "tests::adds"), trace="shop::checked",
        **{"needs": ("cargo",), "cannot": {**NOT_HERE, **NO_RETRIES, **ONE_PROGRAM}, **more},
    )  # fmt: skip


CARGO: Final = rust("cargo test", "cargo")
# Told apart from cargo test by its configuration.
NEXTEST: Final = rust(
    "cargo-nextest", "cargo", ("nextest.toml as .config/nextest.toml",), brings=nextest_folder, slow=True,
    cannot={**NOT_HERE, "reasons": "its JSON leaves them out", "retried": "by its own options alone"},
)  # fmt: skip

GTEST: Final = Suite(
    "GoogleTest", "gtest", (),
    {role: (f"{role}.cpp",) for role in ("suite", "names", "hang", "crash", "empty")} | {"broken": ("CMakeLists.txt", "suite.cpp", "broken.cpp")},
    {
        "adds": ("Math.Adds",), "fails": ("Math.FailsHere",), "skipped": ("Math.LeftOut",), "pair": ("Some/Pair.Follows/0", "Some/Pair.Follows/1"),
        "prints": ("Prints.LookAlikes",), "quick": ("Wait.Quick",), "hangs": ("Wait.NeverEnds",), "dies": ("Wait.Dies",),
        "odd": ("Ünï.größe", "With_names/Odd.Named/the_1", "Typed/1.Holds"),
    },
    failing=("suite.cpp", "4 is not 3"), no_match=("Math.Addds", "Math.Adds"), trace="**::*Math*", part="Pair", build_folder="build",
    cannot={**NOT_HERE, **NO_RETRIES, **ONE_PROGRAM, **NO_STACK, "parallel": "a program runs its tests one by one"},
    needs=("cmake", "g++"), prepare=built("-lgtest_main", "-lgtest"),
)  # fmt: skip

CATCH2: Final = Suite(
    "Catch2", "catch2", ("main.cpp",),
    {role: (f"{role}.cpp",) for role in ("suite", "names", "hang", "crash", "empty")} | {"broken": ("CMakeLists.txt", "broken.cpp")},
    {
        "adds": ("adds",), "fails": ("fails in checked",), "skipped": (), "pair": ("pair - int", "pair - long"), "prints": ("prints look-alikes",),
        "quick": ("quick",), "hangs": ("never ends",), "dies": ("dies",),
        "odd": ("says \"hi\" and it's <fine> &amp;", "ünï ☃ 雪", "a [b] (c) {d} $1 ^*+?.| x, *", "*comma, semi; colon: and/slash", "~not this"),
    },
    failing=("suite.cpp", "REQUIRE(value == 3)"), no_match=("addds", "adds"), trace="**::*checked*", part="pair -", build_folder="build",
    cannot={
        **NOT_HERE, **NO_RETRIES, **ONE_PROGRAM, **NO_STACK, "parallel": "a program runs its tests one by one",
        "skips": "version 2 knows none (version 3: SKIP)",
        "reasons": "version 2 skips nothing",
    },
    needs=("cmake", "g++"), prepare=built(main="main.cpp"), slow=True,
)  # fmt: skip

CTEST: Final = Suite(
    "CTest", "ctest", ("shop_test.c",),
    {role: (f"{role}.cmake as CMakeLists.txt",) for role in ("suite", "names", "hang", "crash", "empty", "parallel")}
    | {"broken": ("broken.cmake as CMakeLists.txt", "broken.c")},
    {
        "adds": ("adds",), "fails": ("fails_in_checked",), "skipped": ("left_out",), "pair": ("pair_1", "pair_2"), "prints": ("prints_look_alikes",),
        "quick": ("quick",), "hangs": ("never_ends",), "dies": ("dies",),
        "odd": ("says it's fine", "ünï ☃ 雪", "a [b] (c) {d} ^*+?.| x", "comma, colon: and/slash"), "meet": ("meets_left", "meets_right"),
    },
    parallel="ctest -j2",
    failing=("shop_test.c", "error: 4 is not 3"), no_match=("addds", "adds"), trace="**::*fails_in_checked*", reason="exit status",
    cannot={**NOT_HERE, **NO_RETRIES, **ONE_PROGRAM, **NO_STACK},
    build_folder="build", needs=("cmake", "gcc"), prepare=built(),
)  # fmt: skip

UNITTEST: Final = Suite(
    "unittest", "unittest", ("shop.py", "pyproject.toml"),
    {
        "suite": ("test_suite.py",), "names": ("test_names.py",), "hang": ("test_hang.py",), "crash": ("test_crash.py",),
        "broken": ("test_broken.py", "test_suite.py"), "empty": (),
    },
    {
        "adds": ("test_suite.Math.test_adds",), "fails": ("test_suite.Math.test_fails_here",), "skipped": ("test_suite.Math.test_left_out",),
        "pair": ("test_suite.Math.test_pair_one", "test_suite.Math.test_pair_two"), "prints": ("test_suite.Math.test_prints_look_alikes",),
        "quick": ("test_hang.Wait.test_a_quick", "test_crash.Wait.test_a_quick"), "hangs": ("test_hang.Wait.test_never_ends",),
        "dies": ("test_crash.Wait.test_dies",),
        "odd": ("test_names.Ünï.test_größe", "test_names.Ünï.test says \"hi\" and it's fine", "test_names.Ünï.test a [b] (c) {d} $1 ^*+?.|\\ x"),
    },
    failing=("shop.py", 'raise ValueError("4 is not 3")'), no_match=("test_addds", "test_adds"), trace="**.checked", breaks_all=False,
    cannot={**NOT_HERE, **NO_RETRIES, "parallel": "it runs its tests one by one", "apart": "it runs its tests one by one"},
)  # fmt: skip

GO: Final = Suite(
    "go test", "go", ("go.mod", "shop.txt as shop.go"),
    {
        **{role: (f"{role}.txt as {role}_test.go",) for role in ("suite", "names", "hang", "crash")}, "empty": (),
        "broken": ("broken.txt as broken.go", "suite.txt as suite_test.go"), "parallel": ("left.txt as left_test.go", "right.txt as right_test.go"),
    },
    {
        "adds": ("TestAdds",), "fails": ("TestChecked",), "skipped": ("TestLeftOut",), "pair": ("TestPairOne", "TestPairTwo"),
        "prints": ("TestPrintsLookAlikes",), "quick": ("TestQuick",), "hangs": ("TestNeverEnds",), "dies": ("TestDies",),
        "odd": ("TestÜnï/says_\"hi\"_and_it's_fine", "TestÜnï/雪_☃", "TestÜnï/a_[b]_(c)_{d}_$1_^*+?.|\\_x", "TestÜnï/comma,_semi;_colon:_and"),
        "meet": ("TestMeetsLeft", "TestMeetsRight"),
    },
    failing=("suite_test.go", "t.Errorf("), no_match=("TestAddds", "TestAdds"), trace="**.*Checked*", part="Pair", dies_by=None,
    cannot={**NOT_HERE, **NO_RETRIES, **ONE_PROGRAM, **NO_STACK},
    parallel="go test -parallel 2 ./...", needs=("go",),
)  # fmt: skip

SUITES: Final = (PYTEST, CARGO, NEXTEST, GTEST, CATCH2, CTEST, UNITTEST, GO, *JAVASCRIPT)
