"""The verdict, from samples: what is proven, what is only likely, and what is no alarm."""

from __future__ import annotations

from dataclasses import replace

import pytest

from actors.stuck_detector.graph import cycles, hopeless
from actors.stuck_detector.sample import Process, Thread, Tree, Wait
from actors.stuck_detector.verdict import Known, Loop, judge
from strobe.model.stuck import Verdict

SPIN = Loop(since_s=3.0, looks=4, repeats=True, place="spin, spin.c:3")


def asleep(tid: int, wait: Wait, pid: int = 1) -> Thread:
    return Thread(pid, tid, f"t{tid}", "S", "futex_wait_queue", 202, 1_000_000, (0x1000, 128, 2, 0, 0, 0), 0x7000, 0x4000, wait)


def mutex(owner: int, timed: bool = False) -> Wait:
    return Wait("mutex", timed, 0x1000 + owner, frozenset({owner}), owner, what=f"pthread mutex, held by t{owner}")


def condition(*wakers: int) -> Wait:
    return Wait("condition", wakers=frozenset(wakers), what="a condition variable")


def tree(*threads: Thread, at: float = 0.0, moved: int = 0) -> Tree:
    return Tree(at, list(threads), {pid: Process(pid, 0, "p", 0, moved) for pid in {thread.pid for thread in threads}})


def still(*threads: Thread, known: Known | None = None) -> Verdict:
    return judge(tree(*threads), tree(*threads, at=0.25), known)


def busy(*threads: Thread, known: Known | None = None, moved: int = 0, share: float = 1.0) -> Verdict:
    """The threads that run used `share` of a core each."""
    later = [replace(one, cpu_ns=one.cpu_ns + int(0.25e9 * share)) if one.state == "R" else one for one in threads]
    return judge(tree(*threads), tree(*later, at=0.25, moved=moved), known)


def running(tid: int) -> Thread:
    return Thread(1, tid, f"t{tid}", "R", "", None, 0)


def test_a_cycle_of_owned_locks_is_proven() -> None:
    verdict = still(asleep(1, Wait("join", wakers=frozenset({2}), owner=2)), asleep(2, mutex(3)), asleep(3, mutex(2)))
    assert (verdict.kind, verdict.cause, verdict.certainty) == ("deadlock", "mutex_cycle", "proven")
    assert {(edge.waiter, edge.owner) for edge in verdict.edges} == {(1, 2), (2, 3), (3, 2)}


def test_a_cycle_is_proven_while_others_run() -> None:
    assert busy(running(1), asleep(2, mutex(3)), asleep(3, mutex(2))).certainty == "proven"


def test_one_timed_wait_breaks_a_cycle() -> None:
    assert still(asleep(1, mutex(2)), asleep(2, mutex(1, timed=True))).kind == "waiting_outside"


def test_a_cycle_that_moved_between_the_samples_is_none() -> None:
    moved = tree(asleep(1, mutex(2)), replace(asleep(2, mutex(1)), cpu_ns=2_000_000), at=0.25)
    assert judge(tree(asleep(1, mutex(2)), asleep(2, mutex(1))), moved).certainty != "proven"


def test_a_lock_taken_twice() -> None:
    assert (still(asleep(1, mutex(1))).cause, still(asleep(1, mutex(1))).certainty) == ("self_lock", "proven")


def test_nobody_left_to_wake_is_probable_never_proven() -> None:
    verdict = still(asleep(1, condition(2)), asleep(2, condition(1)))
    assert (verdict.kind, verdict.cause, verdict.certainty) == ("deadlock", "no_waker", "probable")


@pytest.mark.parametrize("outside", ["network", "stdin", "signal", "timer"])
def test_one_thread_that_waits_outside_can_wake_the_others(outside: str) -> None:
    verdict = still(asleep(1, Wait("read", outside=outside, what="something")), asleep(2, condition(1)))
    assert (verdict.kind, verdict.cause) == ("waiting_outside", outside)


def test_an_idle_pool_beside_a_thread_that_computes() -> None:
    assert busy(running(1), asleep(2, condition(1, 3)), asleep(3, condition(1, 2))).kind == "busy_moving"


def test_a_holder_that_ended() -> None:
    assert still(asleep(1, Wait("abandoned", what="a lock"))).cause == "abandoned_lock"


def test_processes_that_read_from_each_other() -> None:
    ends = Wait("read", wakers=frozenset({2}), what="a pipe"), Wait("read", wakers=frozenset({1}), what="a pipe")
    verdict = still(asleep(1, ends[0]), asleep(2, ends[1], pid=2))
    assert (verdict.cause, verdict.certainty) == ("process_cycle", "probable")


def test_a_child_that_sleeps_is_what_its_parent_waits_for() -> None:
    verdict = still(asleep(1, Wait("child", wakers=frozenset({2}))), asleep(2, Wait("sleep", True, outside="timer", what="a timer"), pid=2))
    assert (verdict.kind, verdict.cause) == ("waiting_outside", "timer") and "t2" in verdict.summary


def test_a_state_that_repeats_is_a_loop_and_one_that_changes_is_none() -> None:
    assert busy(running(1), known=Known(loops={1: SPIN})).kind == "infinite_loop"
    assert busy(running(1), known=Known(loops={1: replace(SPIN, repeats=False)})).kind == "busy_moving"
    assert busy(running(1), known=Known(loops={1: replace(SPIN, since_s=0.3)})).kind == "busy_moving"
    assert busy(running(1), known=Known(loops={1: SPIN}), moved=1 << 20).kind == "busy_moving"


def test_threads_that_share_the_processor_still_compute() -> None:
    assert busy(running(1), known=Known(loops={1: SPIN}), share=0.2).kind == "infinite_loop"
    assert busy(running(1), share=0.2).kind == "busy_moving"


def test_threads_that_give_way_to_each_other() -> None:
    polite = replace(SPIN, repeats=False, calls_system=True, yields=True)
    assert busy(running(1), running(2), known=Known(loops={1: polite, 2: polite})).cause == "livelock"
    assert busy(running(1), running(2), known=Known(loops={1: polite})).kind == "busy_moving"


def test_a_stack_that_grows() -> None:
    deep = replace(SPIN, repeats=False, stack_grew=8 << 20)
    assert busy(running(1), known=Known(loops={1: deep})).cause == "recursion"


@pytest.mark.parametrize(("state", "cause"), [("T", "stopped"), ("t", "tracer")])
def test_what_we_hold_is_not_stuck(state: str, cause: str) -> None:
    held = [replace(asleep(tid, mutex(3 - tid)), state=state, wait=None) for tid in (1, 2)]
    assert (still(*held).kind, still(*held).cause) == ("paused", cause)


def test_names_and_places_are_told() -> None:
    known = Known(names={(1, 0x1002): "lock_a"}, places={1: "pay, bank.c:9"}, functions={1: "pay"})
    verdict = still(asleep(1, mutex(2)), asleep(2, mutex(1)), known=known)
    assert "lock_a" in verdict.summary and "pay, bank.c:9" in verdict.summary and verdict.suggested_traces == ["pay"]


def test_only_what_waits_for_the_hopeless_is_hopeless() -> None:
    threads = {1: asleep(1, condition(2)), 2: asleep(2, condition(1, 3)), 3: running(3)}
    assert hopeless(threads) == set() and cycles(threads) == []
    assert hopeless({**threads, 3: asleep(3, condition(1))}) == {1, 2, 3}
