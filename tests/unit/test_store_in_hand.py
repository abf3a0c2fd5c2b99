"""The journal of the batches in hand: what a store finds in it that follows one that died."""

from __future__ import annotations

from pathlib import Path

from actors.store.in_hand import ROW, ROWS, InHand, SessionInHand


def after_death(path: Path, *, fell: bool = True) -> SessionInHand:
    return SessionInHand(InHand(path, fell=fell), "a")


def test_a_single_batch_is_deadly_after_two_deaths(tmp_path: Path) -> None:
    path = tmp_path / "in-hand"
    SessionInHand(InHand(path, fell=False), "a").take(5, 3)
    hand = after_death(path)
    assert hand.is_suspect(5, 3) and not hand.is_deadly(5, 3)
    hand.take(5, 3)
    hand = after_death(path)
    assert hand.is_deadly(5, 3) and not hand.is_deadly(5, 4) and not hand.is_deadly(6, 3)
    hand.refuse()
    hand.take(5, 4)
    assert not hand.is_suspect(5, 4), "it was never in hand when the store died"
    assert path.stat().st_mode & 0o777 == 0o600


def test_of_several_the_one_is_found(tmp_path: Path) -> None:
    path = tmp_path / "in-hand"
    hand = SessionInHand(InHand(path, fell=False), "a")
    for seq in range(1, 7):
        hand.take(5, seq)
    hand.stored(5, 2)
    hand = after_death(path)
    assert [seq for seq in range(1, 9) if hand.is_suspect(5, seq)] == list(range(1, 7))
    hand.take(5, 3)
    hand.stored(5, 3)
    hand.take(5, 4)
    hand = after_death(path)
    assert [seq for seq in range(1, 9) if hand.is_deadly(5, seq)] == [4]
    hand.refuse()
    assert hand.is_suspect(5, 5) and not hand.is_deadly(5, 5), "one death, with five others"
    for seq in (5, 6, 7):
        hand.take(5, seq)
        hand.stored(5, seq)
    assert not hand.is_suspect(5, 8)


def test_a_kill_from_outside_says_nothing(tmp_path: Path) -> None:
    path = tmp_path / "in-hand"
    SessionInHand(InHand(path, fell=False), "a").take(5, 3)
    for _ in range(3):
        hand = after_death(path, fell=False)
        assert not hand.is_suspect(5, 3)
        hand.take(5, 3)
    hand = after_death(path)
    assert hand.is_suspect(5, 3)
    assert after_death(path, fell=False).is_suspect(5, 3), "what was suspect stays so"


def test_what_is_not_in_hand_is_not_suspect(tmp_path: Path) -> None:
    path = tmp_path / "in-hand"
    hand = SessionInHand(InHand(path, fell=False), "a")
    hand.take(5, 3)
    hand.stored(5, 3)
    assert not after_death(path).is_suspect(5, 4)


def test_another_epoch_begins_anew(tmp_path: Path) -> None:
    """A new session process sends other batches."""
    path = tmp_path / "in-hand"
    SessionInHand(InHand(path, fell=False), "a").take(5, 1)
    hand = after_death(path)
    assert not hand.is_suspect(6, 1)
    hand.take(6, 1)
    assert not after_death(path).is_deadly(6, 1)


def test_more_sessions_than_rows(tmp_path: Path) -> None:
    path = tmp_path / "in-hand"
    whole = InHand(path, fell=False)
    for number in range(ROWS + 1):
        SessionInHand(whole, f"s{number}").take(5, 1)
    whole.forget("s7")
    SessionInHand(whole, "a" * 185).take(5, 1)
    SessionInHand(whole, "late").take(5, 1)
    after = InHand(path, fell=True)
    assert SessionInHand(after, "late").is_suspect(5, 1) and SessionInHand(after, f"s{ROWS - 1}").is_suspect(5, 1)
    assert not any(SessionInHand(after, name).is_suspect(5, 1) for name in ("s7", f"s{ROWS}", "a" * 185))


def test_without_a_file_it_goes_on(tmp_path: Path) -> None:
    whole = InHand(tmp_path / "no folder" / "in-hand", fell=True)
    hand = SessionInHand(whole, "a")
    hand.take(5, 1)
    assert isinstance(whole.problem, FileNotFoundError) and whole.get("a").last == 1
    damaged = tmp_path / "in-hand"
    damaged.write_bytes(b"\xff" * (ROW.size * ROWS // 2))
    assert not SessionInHand(InHand(damaged, fell=True), "a").is_suspect(5, 1)
