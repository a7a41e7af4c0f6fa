"""Runs the command `cere` and reads its JSON."""

import json
import os
import re
import shutil
import subprocess
import sys


class Error(Exception):
    """The command gave no result. The text is what it said.

    `code` is the code of the message, such as `CERE-2003`, or None: `cere explain CODE` explains it. `status` is the
    command's exit status, `arguments` its command line.
    """

    def __init__(self, message, status=None, arguments=(), code=None):
        """Keep what the command said, and how it ended."""
        super().__init__(message)
        self.code = code
        self.status = status
        self.arguments = list(arguments)


def find(cere=None):
    """Return the file of the command: `cere`, or the environment variable CERE, or the one in PATH."""
    name = os.fspath(cere or os.environ.get("CERE") or "cere")
    found = shutil.which(name)
    if found is None:
        raise Error(
            f"there is no command {name}: install CERE (`make`, `make install`), or name its file, "
            "by the environment variable CERE or by Store(..., cere=FILE)"
        )
    return found


def run(command, *what, cere=None, program=None, **options):
    """Run `cere COMMAND` and return its JSON.

    An option is a keyword with `_` for `-`: `no_sandbox=True` is `--no-sandbox`, `reps=20` is `--reps=20`, a list gives
    an option several times, `None` and `False` leave it out. A `_` at the end keeps a name from being a word of Python:
    `as_="old=new"`. `program` is what the command runs: a file, or a list of the file and its arguments.

    A status other than 0 with a result is an answer. Without a result it raises `Error`. What else the command says
    goes to `sys.stderr`.
    """
    line = [find(cere), command, "--json", *_arguments(options), *map(str, what)]
    if program is not None:
        line += ["--", *map(str, [program] if isinstance(program, (str, os.PathLike)) else program)]
    out, said, status = _output(line)
    # The command writes its result whole, or nothing; of one codelet that cannot be replayed the error as well.
    result = json.loads(out) if out.strip() else None
    if result is None or (isinstance(result, dict) and isinstance(result.get("error"), str)):
        message, code = _message(said)
        raise Error(message or f"{line[0]} ended with status {status} and said nothing", status, line, code)
    sys.stderr.write(said)
    return result


def _arguments(options):
    for name, value in options.items():
        option = "--" + name.rstrip("_").replace("_", "-")
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is True:
                yield option
            elif one is not None and one is not False:
                # One word, since flags of compilers begin with a dash as well.
                yield f"{option}={one}"


def _output(line):
    with subprocess.Popen(
        line,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="backslashreplace",
    ) as process:
        try:
            out, said = process.communicate()
        except BaseException:
            # Not killed: the command has to end what it runs.
            process.terminate()
            process.wait()
            raise
    return out, said, process.returncode


def _message(said):
    """Return what the command said in its error, or all that it said, and the code of the message."""
    error = re.search(r"^(?:cere: )?error(?:\[(CERE-\d+)\])?: ", said, re.MULTILINE)
    return said[error.end() if error else 0 :].strip(), error and error[1]
