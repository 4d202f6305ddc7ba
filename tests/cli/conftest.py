"""Running the program as a user would."""

import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "01-first-forecast" / "run.yaml"
RUNS = ROOT / "calibration" / "runs" / "torchtitan.csv"
BINARY = os.environ.get("FORERUN_BINARY", str(ROOT / "build" / "bin" / "forerun"))


class Answer:
    def __init__(self, done: subprocess.CompletedProcess) -> None:
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr

    def json(self):
        return json.loads(self.out)


@pytest.fixture
def forerun(tmp_path):
    """forerun("predict", "run.yaml", ..., stdin=text) runs the binary in an empty folder."""

    def run(*arguments, stdin=None, timeout=120, env=None):
        done = subprocess.run(
            [BINARY, *map(os.fspath, map(_plain, arguments))],
            input=stdin,
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",
            timeout=timeout,
            cwd=tmp_path,
            env={**os.environ, **(env or {})},
        )
        return Answer(done)

    return run


def _plain(argument):
    return argument if isinstance(argument, (str, bytes, os.PathLike)) else str(argument)


@pytest.fixture
def write(tmp_path):
    """write("run.yaml", text) makes a file in the folder that the binary runs in."""

    def make(name, content):
        path = tmp_path / name
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content)
        return name

    return make


@pytest.fixture
def example():
    return EXAMPLE


@pytest.fixture
def runs():
    return RUNS
