import shutil
from pathlib import Path

import pytest

import cere

REPOSITORY = Path(__file__).resolve().parents[2]

PROGRAM = """\
#include <stdio.h>
#include <stdlib.h>
#define N 3000
__attribute__((noinline)) double smooth(const double *a, double *b, int n) {
    double s = 0;
    for (int i = 1; i < n - 1; i++) {
        b[i] = 0.25 * (a[i - 1] + 2 * a[i] + a[i + 1]);
        s += b[i];
    }
    return s;
}
int main(int argc, char **argv) {
    double *a = malloc(N * 8), *b = calloc(N, 8), s = 0;
    for (int i = 0; i < N; i++) a[i] = i % 7;
    for (int r = 0; r < 2000; r++) s += smooth(a, b, N);
    printf("%.15g\\n", s);
    return argc > 1 ? atoi(argv[1]) : 0;
}
"""


@pytest.fixture(scope="session")
def captured(tmp_path_factory):
    """A directory with a program whose loop is captured. Its tests leave build, profile and codelets alone."""
    directory = tmp_path_factory.mktemp("program")
    (directory / "k.c").write_text(PROGRAM)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(directory)
        store = cere.Store()
        store.run("instrument", program=["sh", "-c", "$CC -O2 -g k.c -o k"])
        store.run("profile", program="./k")
        store.run("capture", "smooth@*", invocation="50", program="./k")
    return directory


@pytest.fixture
def store(captured, monkeypatch):
    monkeypatch.chdir(captured)
    return cere.Store()


@pytest.fixture
def wave(tmp_path, monkeypatch):
    """A copy of the example `wave`, as the working directory."""
    directory = tmp_path / "wave"
    built = shutil.ignore_patterns("*.o", ".cere", "wave")
    shutil.copytree(REPOSITORY / "examples" / "wave", directory, ignore=built)
    monkeypatch.chdir(directory)
    return directory
