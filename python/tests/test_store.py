import importlib.metadata
import os
import shutil
import signal
import subprocess
import sys
import time

import pandas as pd
import pytest

import cere

# Of these tests alone.
SLEEP = ["sleep", f"1000.{os.getpid()}"]


def test_version_is_the_commands():
    said = subprocess.run([os.environ["CERE"], "--version"], capture_output=True, text=True, check=True).stdout
    assert said.split()[1] == importlib.metadata.version("cere")


def test_profile(store):
    profile = store.profile()
    smooth = profile[profile["name"].str.startswith("smooth@")].iloc[0]
    assert smooth["invocations"] == 2000
    assert smooth["share"] == pytest.approx(smooth["self_seconds"] / profile.attrs["seconds"])
    assert 0 < smooth["cycles.min"] <= smooth["cycles.mean"] <= smooth["cycles.max"]
    assert profile.attrs["command"] == ["./k"]
    assert profile.attrs["seconds"] > 0
    assert set(store.profile("over_threads")["name"]) == set(profile["name"])
    tree = store.profile("tree")
    assert tree["invocations"].sum() > 2000


def test_regions(store):
    regions = store.regions()
    assert len(regions) == 3
    assert list(store.regions("smooth@*")["function"]) == ["smooth"]
    assert set(regions["kind"]) == {"loop"}


def test_codelets(store):
    codelet = store.codelets().iloc[0]
    assert codelet["name"] == "smooth@k.c:6:50"
    assert codelet["current"] and codelet["in_vivo_seconds"] > 0
    assert os.path.getsize(codelet["file"]) == codelet["bytes"]


def test_records_grow_with_replays(store):
    before = len(store.records())
    cere.replay("smooth@*", flags="-O3 -march=native", reps=12)
    records = store.records("smooth@*")
    assert len(records) == before + 1
    last = records.iloc[-1]
    assert last["setting.flags"] == "-O3 -march=native"
    assert last["times.samples"] == 12
    assert last["times.interval_low"] <= last["times.seconds_median"] <= last["times.interval_high"]
    assert abs(last["when"] - pd.Timestamp.now(tz="UTC")) < pd.Timedelta(minutes=5)


def test_an_empty_store(tmp_path):
    (tmp_path / "empty").mkdir()
    store = cere.Store(tmp_path / "empty")
    assert store.codelets().empty and store.records().empty


def test_a_missing_store_is_the_commands_error(tmp_path):
    nowhere = tmp_path / "nowhere"
    for ask in (
        lambda s: s.profile(),
        lambda s: s.codelets(),
        lambda s: s.records(),
        lambda s: cere.replay("a", store=s),
    ):
        with pytest.raises(cere.Error) as caught:
            ask(cere.Store(nowhere))
        assert caught.value.status == 1
        said = subprocess.run(caught.value.arguments, capture_output=True, text=True).stderr
        assert caught.value.code == "CERE-4002"
        assert said == f"cere: error[CERE-4002]: {caught.value}\n"
        assert str(nowhere) in said


def test_a_wrong_option_is_the_commands_error(store):
    with pytest.raises(cere.Error, match=r"unexpected argument '--colour'") as caught:
        cere.replay("smooth@*", colour="red")
    assert caught.value.status == 2


def test_a_missing_command(store, monkeypatch):
    with pytest.raises(cere.Error, match=r"there is no command /nowhere/cere: .*CERE"):
        cere.Store(cere="/nowhere/cere").codelets()
    file = os.environ["CERE"]
    monkeypatch.delenv("CERE")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(cere.Error, match=r"there is no command cere: "):
        store.codelets()
    assert len(cere.Store(cere=file).codelets()) == 1
    monkeypatch.setenv("PATH", os.path.dirname(file), prepend=os.pathsep)
    assert len(store.codelets()) == 1


def test_a_program_that_fails_has_a_profile(captured, tmp_path, capfd, monkeypatch):
    # A copy, to leave the others their profile.
    shutil.copytree(captured, tmp_path / "copy", symlinks=True)
    monkeypatch.chdir(tmp_path / "copy")
    store = cere.Store()
    profile = store.run("profile", program=["./k", 3])
    assert profile["status"] == 3
    assert "./k ended with status 3" in capfd.readouterr().err
    assert store.profile().attrs["status"] == 3


def test_other_commands(store):
    machine = cere.run("machine", quick=True, seconds=3, no_keep=True)
    assert machine["quick"]
    counts = store.run("count", "smooth@*", geometry="none")
    assert counts[0]["codelet"] == "smooth@k.c:6:50"


def test_an_interrupt_ends_what_the_command_runs(store, tmp_path):
    wait = f"import cere; cere.Store({str(tmp_path / '.cere')!r}).run('instrument', program={SLEEP})"
    python = subprocess.Popen([sys.executable, "-c", wait], stderr=subprocess.DEVNULL)
    try:
        assert until(lambda: sleepers(), 60), "the build never began"
        # To this process alone, as Jupyter does.
        python.send_signal(signal.SIGINT)
        assert python.wait(60) != 0
        assert until(lambda: not sleepers(), 60), "the build went on"
    finally:
        python.kill()


def until(what, seconds):
    end = time.monotonic() + seconds
    while not what():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def sleepers():
    return subprocess.run(["pgrep", "-fx", " ".join(SLEEP)], capture_output=True, text=True).stdout.split()
