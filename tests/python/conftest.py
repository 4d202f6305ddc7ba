"""The package beside the command line, whose answers are the same."""

import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "01-first-forecast" / "run.yaml"
BINARY = os.environ.get("FORERUN_BINARY", str(ROOT / "build" / "bin" / "forerun"))


@pytest.fixture
def example():
    return EXAMPLE


@pytest.fixture
def run():
    """The example as a mapping."""
    return {
        "cluster": {"name": "grand-teton-h100-95gb", "nodes": 16},
        "model": "llama3-8b",
        "training": {"sequence_length": 8192, "micro_batch": 2, "global_batch": 256,
                     "precision": "bf16", "optimizer": "adamw"},
        "parallelism": {"dp_shard": 128, "dp_replicate": 1, "tp": 1, "cp": 1, "pp": 1, "ep": 1},
        "execution": {"recompute": "selective-op", "compile": True, "reshard_after_forward": "default"},
        "software": "torchtitan-2024-12",
    }


@pytest.fixture
def command_line(tmp_path):
    """command_line("predict", path, ...) is the completed process, in an empty folder."""

    def call(*arguments):
        return subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True,
                              cwd=tmp_path, timeout=60)

    return call


@pytest.fixture
def document(command_line):
    """The JSON document of a verb."""

    def answer(*arguments):
        done = command_line(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return answer
