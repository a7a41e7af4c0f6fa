import os
import re
import subprocess
import xml.etree.ElementTree as ElementTree

import matplotlib
import nbclient
import nbformat
import pytest

import cere
from conftest import PROGRAM, REPOSITORY

matplotlib.use("agg")


def texts(ax):
    return [text.get_text() for text in ax.texts]


def test_plot_profile(store):
    profile = store.profile()
    ax = cere.plot_profile(profile)
    assert [label.get_text() for label in ax.get_yticklabels()] == list(profile["name"][::-1])
    assert [bar.get_width() for bar in ax.patches] == list(profile["self_seconds"][::-1])
    assert texts(ax)[-1] == f"{profile['share'][0]:.1%}"
    assert len(cere.plot_profile(store.profile("over_threads"), count=1).patches) == 1


def test_plot_try(store, tmp_path):
    (tmp_path / "right.c").write_text(PROGRAM.replace("i < n - 1; i++", "i <= n - 2; i++"))
    (tmp_path / "wrong.c").write_text(PROGRAM.replace("2 * a[i]", "2.5 * a[i]"))
    variants = [f"k.c={tmp_path / name}" for name in ("right.c", "wrong.c")]
    tried = cere.try_edit(source=variants, reps=3)
    ax = cere.plot_try(tried)
    ratio, cross, _ = ax.lines
    assert ratio.get_xdata()[0] == tried["ratio"][0]
    assert cross.get_marker() == "x" and texts(ax) == ["different"]
    # Of an edit alone that has no time.
    assert texts(cere.plot_try(cere.try_edit(source=variants[1], reps=3))) == ["different"]


def test_roofline(store, tmp_path):
    machine = tmp_path / "machine.json"
    line = [os.environ["CERE"], "machine", "--quick", "--seconds", "3", "--no-keep", "--json"]
    machine.write_bytes(subprocess.run(line, capture_output=True, check=True).stdout)
    picture = cere.roofline("smooth@*", machine=machine, state="data=warm,code=warm", reps=3)
    assert list(picture.points["state"]) == ["data=warm,code=warm"]
    assert picture.points["flops"][0] > 3000
    drawn = ElementTree.fromstring(picture._repr_svg_())
    assert drawn.tag == "{http://www.w3.org/2000/svg}svg"
    with pytest.raises(cere.Error, match="nowhere.json"):
        cere.roofline("smooth@*", machine="nowhere.json")


def test_the_guide(wave):
    guide = (REPOSITORY / "docs/guide/src/python.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", guide, re.DOTALL)
    assert len(blocks) > 3
    known = {}
    for block in blocks:
        exec(compile(block, "python.md", "exec"), known)
    assert set(known["faster"]["verdict"]) <= {"exact", "tolerance"}
    assert list(known["wrong"]["verdict"]) == ["different"]
    assert not known["flags"].empty


def test_the_notebook(wave):
    notebook = nbformat.read(wave / "cere.ipynb", as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(not cell.outputs for cell in code), "outputs are not committed"
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    verdicts = next(cell for cell in code if "try_edit" in cell.source).outputs[0].data["text/html"]
    assert ">exact<" in verdicts and ">different<" in verdicts
    shown = [set(output.get("data", {})) for cell in code for output in cell.outputs]
    assert sum("text/html" in kinds for kinds in shown) >= 4
    assert sum("image/png" in kinds for kinds in shown) >= 2
    assert sum("image/svg+xml" in kinds for kinds in shown) == 1
