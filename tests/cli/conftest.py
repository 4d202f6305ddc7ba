"""Running the program as a user would."""

import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "01-first-forecast" / "run.yaml"
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
            [BINARY, *map(str, arguments)],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout,
            cwd=tmp_path,
            env={**os.environ, **(env or {})},
        )
        return Answer(done)

    return run


@pytest.fixture
def example():
    return EXAMPLE
