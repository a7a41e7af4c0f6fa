from pathlib import Path

import pytest

import cere
from conftest import PROGRAM


def edited(directory, name, text):
    """The option that takes `text` for the program's source."""
    assert text != PROGRAM
    (directory / name).write_text(text)
    return f"k.c={directory / name}"


def test_replay(store):
    replay = cere.replay("smooth@*", reps=5)
    assert list(replay["verdict"]) == ["exact"]
    row = replay.iloc[0]
    assert row["samples"] == 5 == len(row["cycles"])
    assert row["seconds.low"] <= row["seconds.median"] <= row["seconds.high"]


def test_replay_of_a_file_and_of_wrong_flags(store):
    file = store.codelets()["file"][0]
    assert list(cere.replay(file, reps=3, no_check=True)["verdict"]) == ["unchecked"]
    with pytest.raises(cere.Error, match="-march=pdp11"):
        cere.replay(file, flags="-march=pdp11")


def test_a_right_and_a_wrong_edit_are_answers(store, tmp_path):
    right = edited(tmp_path, "right.c", PROGRAM.replace("i < n - 1; i++", "i <= n - 2; i++"))
    wrong = edited(tmp_path, "wrong.c", PROGRAM.replace("2 * a[i]", "2.5 * a[i]"))
    tried = cere.try_edit("smooth@*", source=[right, wrong], reps=3)
    assert list(tried["verdict"]) == ["exact", "different"]
    assert list(tried["variant"]) == [right, wrong]
    assert tried["ratio"][0] > 0
    assert tried["interval_low"][0] <= tried["ratio"][0] <= tried["interval_high"][0]
    assert tried[["ratio", "interval_low", "interval_high"]].loc[1].isna().all()
    alone = cere.try_edit(source=wrong, reps=3)
    assert list(alone["verdict"]) == ["different"]
    assert "words differ" in alone["reason"][0]


def test_an_edit_that_does_not_compile_is_an_answer(store, tmp_path):
    broken = edited(tmp_path, "broken.c", PROGRAM.replace("double s = 0;\n    for", "double s = missing;\n    for"))
    tried = cere.try_edit(source=broken, reps=3)
    assert list(tried["verdict"]) == ["failed"]
    assert "missing" in tried["reason"][0]


def test_nothing_to_try_is_an_error(store):
    with pytest.raises(cere.Error, match="nothing to try"):
        cere.try_edit()


def test_compare(store):
    compared = cere.compare("captured", "flags:-O0", "smooth@*", reps=3, seconds=0.2)
    assert list(compared["name"]) == ["smooth@k.c:6"]
    assert compared["interval_low"][0] <= compared["ratio"][0] <= compared["interval_high"][0]
    # Without the optimiser it does more.
    before, after = compared["counts"][0]
    assert after["instructions"] > before["instructions"]
    with pytest.raises(cere.Error, match="nowhere"):
        cere.compare("captured", "nowhere")


def test_tune(store):
    tuned = cere.tune("smooth@*", space="levels", budget=4, reps=10)
    assert list(tuned["name"]) == ["smooth@k.c:6"]
    assert tuned["evaluations"][0] == tuned.attrs["evaluations"] == 4
    assert tuned.attrs["spent_seconds"]["compiling"] > 0


def test_stores_and_paths(store, tmp_path, monkeypatch):
    path = Path.cwd() / ".cere"
    monkeypatch.chdir(tmp_path)
    # A store keeps its place.
    assert len(store.codelets()) == 1
    assert list(cere.replay("smooth@*", store=path, reps=3)["verdict"]) == ["exact"]
    assert repr(store) == f"Store('{path}')"
