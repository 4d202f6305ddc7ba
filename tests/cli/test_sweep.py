"""Every valid plan in a space: counts, the best, the Pareto front, files, interruption."""

import csv
import itertools
import json
import os
import signal
import subprocess
import time

import pytest
from conftest import BINARY, EXAMPLE

SPACE = {
    "parallelism.dp_shard": [-1, 16],
    "parallelism.tp": [1, 2, 8, 3],
    "parallelism.pp": [1, 4],
    "training.micro_batch": [1, 2, 7],
    "execution.recompute": ["none", "full"],
    "training.precision": ["bf16", "nvfp4"],
}
NUMBERS = ["tokens_s_gpu", "step_time_s", "mfu", "peak_mem_gib"]


def sweep_text(space, run=EXAMPLE):
    return json.dumps({"run": str(run), "space": space})


@pytest.fixture
def file(write):
    return write("sweep.json", sweep_text(SPACE))


def answered(forerun, *arguments):
    answer = forerun("sweep", *arguments, "--json")
    assert (answer.code, answer.err) == (0, ""), answer.err
    return answer.json()


def test_every_point_is_counted_once(forerun, file):
    s = answered(forerun, file)
    total = 1
    for values in SPACE.values():
        total *= len(values)
    assert s["points_total"] == total
    unfit = s["points_rejected"].get("does not fit", 0)
    not_valid = sum(s["points_rejected"].values()) - unfit
    assert s["points_valid"] + not_valid == total
    assert s["points_forecast"] + s["points_pruned"] == s["points_valid"]
    assert s["seconds"] > 0
    assert s["jobs"] >= 1


def test_rejects_by_reason(forerun, file):
    rejected = answered(forerun, file)["points_rejected"]
    assert rejected["unsupported: precision nvfp4 in torchtitan-2024-12"] > 0
    assert rejected["invalid: batch-by-replicas"] > 0  # micro_batch 7
    assert rejected["invalid: degrees-by-gpus"] > 0  # 16 x tp x pp is not 128
    assert rejected["invalid: parallelism.dp_shard"] > 0  # tp 3 does not divide 128


def test_counts_are_those_of_predict(forerun, file):
    """Each point as a run of its own is refused, fits or not as the sweep has counted it."""
    s = answered(forerun, file)
    ok = unfit = refused = 0
    for values in itertools.product(*SPACE.values()):
        sets = [f"--set={key}={value}" for key, value in zip(SPACE, values)]
        answer = forerun("predict", EXAMPLE, "--json", *sets)
        if answer.code == 2:
            refused += 1
        elif answer.json()["fits"]:
            ok += 1
        else:
            unfit += 1
    assert unfit == s["points_rejected"].get("does not fit", 0)
    assert ok + unfit == s["points_valid"]
    assert refused == s["points_total"] - s["points_valid"]
    assert len(answered(forerun, file, "--top", 100000)["top"]) == ok


def test_top_is_ranked_and_each_entry_is_what_predict_says(forerun, file):
    top = answered(forerun, file, "--top", 5)["top"]
    assert len(top) == 5
    speeds = [point["tokens_s_gpu"] for point in top]
    assert speeds == sorted(speeds, reverse=True)
    for point in top:
        assert list(point["settings"]) == list(SPACE)
        sets = [f"--set={key}={value}" for key, value in point["settings"].items()]
        alone = forerun("predict", EXAMPLE, "--json", *sets).json()
        assert alone["fits"] is True
        for key in NUMBERS:
            assert point[key] == alone[key]
    assert answered(forerun, file, "--top", 2)["top"] == top[:2]


def test_best_is_a_run_with_its_forecast(forerun, file, write):
    s = answered(forerun, file)
    best = s["best"]
    assert best["forecast"]["tokens_s_gpu"] == s["top"][0]["tokens_s_gpu"]
    again = forerun("predict", write("best.json", json.dumps(best["run"])), "--json").json()
    for key in (*NUMBERS, "breakdown_s", "memory_gib"):
        assert again[key] == best["forecast"][key]


def test_pareto_front(forerun, file):
    s = answered(forerun, file, "--top", 100000)
    front = s["pareto"]
    assert front
    memory = [point["peak_mem_gib"] for point in front]
    speed = [point["tokens_s_gpu"] for point in front]
    assert memory == sorted(memory) and len(set(memory)) == len(memory)
    assert speed == sorted(speed) and len(set(speed)) == len(speed)
    assert speed[-1] == s["top"][0]["tokens_s_gpu"]
    for point in s["top"]:  # each is beaten by a point of the front, or on it
        assert any(
            f["peak_mem_gib"] <= point["peak_mem_gib"] and f["tokens_s_gpu"] >= point["tokens_s_gpu"]
            for f in front
        )


def test_tables(forerun, file, tmp_path):
    answer = forerun("sweep", file, "--json", "-o", "points.csv")
    top = answer.json()["top"]
    with (tmp_path / "points.csv").open(newline="") as text:
        rows = list(csv.DictReader(text))
    assert list(rows[0]) == [*SPACE, *NUMBERS]
    assert len(rows) == len(top)
    for row, point in zip(rows, top):
        assert {key: row[key] for key in SPACE} == point["settings"]
        assert {key: float(row[key]) for key in NUMBERS} == {key: point[key] for key in NUMBERS}
    forerun("sweep", file, "-o", "points.jsonl")
    lines = (tmp_path / "points.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == top
    sqlite = forerun("sweep", file, "-o", "points.sqlite")
    assert (sqlite.code, sqlite.out) == (2, "")
    assert sqlite.err.startswith("unsupported: ")


def test_out_takes_the_document_too(forerun, file, tmp_path):
    answer = forerun("sweep", file, "--json", "-o", "answer.json")
    assert (answer.code, answer.out) == (0, "")
    assert json.loads((tmp_path / "answer.json").read_text())["status"] == "ok"


def test_exhaustive_and_jobs(forerun, file):
    plain = answered(forerun, file)
    for option in (["--exhaustive"], ["--jobs", 2], ["--jobs", 1, "--exhaustive"]):
        s = answered(forerun, file, *option)
        assert s["points_forecast"] == s["points_valid"]
        assert s["points_pruned"] == 0
        for key in ("points_valid", "points_rejected", "best", "top", "pareto"):
            assert s[key] == plain[key]


def test_text(forerun, file):
    s = answered(forerun, file)
    text = forerun("sweep", file).out
    assert text.startswith(f"{s['points_total']} points: {s['points_valid']} valid, ")
    for reason, count in s["points_rejected"].items():
        assert f"{count} {reason}" in text
    assert f"{s['top'][0]['tokens_s_gpu']:.0f}" in text


def test_axes_that_change_the_scenario(forerun, write):
    file = write("s.json", sweep_text({
        "cluster.gpu.name": ["h100-sxm-80gb", "h100-sxm-95gb"],
        "model": ["llama3-8b", "no-such-model"],
        "software": ["torchtitan-2024-12", "generic"],
    }))
    s = answered(forerun, file, "--top", 100)
    assert s["points_total"] == 8
    assert s["points_rejected"] == {"invalid: model": 4}
    speeds = {tuple(p["settings"].values()): p["tokens_s_gpu"] for p in s["top"]}
    assert speeds["h100-sxm-80gb", "llama3-8b", "generic"] != speeds["h100-sxm-95gb", "llama3-8b", "generic"]


def test_values_may_be_lists_and_mappings(forerun, write):
    file = write("s.json", sweep_text({
        "parallelism.mesh_order": [["pp", "dp_replicate", "dp_shard", "cp", "tp"],
                                   ["pp", "tp", "dp_replicate", "dp_shard", "cp"]],
        "parallelism.tp": [2],
        "parallelism.dp_shard": [64],
        "training.micro_batch": [1],
    }))
    top = answered(forerun, file)["top"]
    assert len(top) == 2
    assert top[0]["tokens_s_gpu"] > top[1]["tokens_s_gpu"]  # tp across nodes is slower


def test_run_inline_and_set(forerun, write):
    run = {
        "cluster": {"name": "dgx-h100", "nodes": 1},
        "model": "llama3-8b",
        "training": {"sequence_length": 4096, "micro_batch": 1, "global_batch": 8},
        "software": "torchtitan-2024-12",
    }
    file = write("s.json", json.dumps({"run": run, "space": {"parallelism.tp": [1, 2]}}))
    s = answered(forerun, file, "--set", "training.global_batch=16")
    assert s["points_valid"] == 2
    assert s["best"]["run"]["training"]["global_batch"] == 16


def test_nothing_fits(forerun, write):
    file = write("s.json", sweep_text({"model": ["llama3-405b"], "training.micro_batch": [1, 2]}))
    s = answered(forerun, file)
    assert s["points_rejected"] == {"does not fit": 2}
    assert (s["best"], s["top"], s["pareto"]) == (None, [], [])
    assert "no point fits" in forerun("sweep", file).out


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("space: {parallelism.tp: [1]}\n", "s.yaml:1:1: run: is missing"),
        (f"run: {EXAMPLE}\n", "s.yaml:1:1: space: is missing"),
        (f"run: {EXAMPLE}\nspace: {{parallelism.tp: []}}\n", "space.parallelism.tp: found a list"),
        (f"run: {EXAMPLE}\nspace: {{parallelism.tpp: [1]}}\n", "parallelism.tpp: unknown key"),
        (f"run: {EXAMPLE}\nspace: {{parallelism.tp: [1, 0]}}\n", "s.yaml:2:29: parallelism.tp: found 0"),
        ("run: nowhere.yaml\nspace: {parallelism.tp: [1]}\n", "nowhere.yaml: cannot be opened"),
    ],
)
def test_sweep_files_that_are_wrong(forerun, write, content, said):
    answer = forerun("sweep", write("s.yaml", content))
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err


def test_more_points_than_can_be_counted(forerun, write):
    space = {f"training.{key}": list(range(1, 4001)) for key in
             ("sequence_length", "micro_batch", "global_batch", "document_length")}
    answer = forerun("sweep", write("s.json", sweep_text(space)))
    assert (answer.code, answer.out) == (2, "")
    assert "more than 2^40 points" in answer.err


def test_an_interrupted_sweep_keeps_what_is_done(write, tmp_path):
    """Millions of points would take minutes."""
    file = write("long.json", sweep_text({
        "parallelism.tp": [1, 2, 4, 8],
        "parallelism.dp_shard": [-1],
        "training.micro_batch": [1, 2],
        "training.sequence_length": [256 * i for i in range(1, 1001)],
        "training.global_batch": [256 * i for i in range(1, 1001)],
    }))
    running = subprocess.Popen([BINARY, "sweep", file, "--json", "-o", "points.csv"], cwd=tmp_path,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(0.7)
    assert running.poll() is None
    os.kill(running.pid, signal.SIGINT)
    out, err = running.communicate(timeout=10)
    assert (running.returncode, err) == (130, b"")
    s = json.loads(out)
    assert s["status"] == "interrupted"
    assert s["points_total"] == 8_000_000
    assert 0 < s["points_valid"] + sum(s["points_rejected"].values()) < 8_000_000
    assert s["best"]["forecast"]["tokens_s_gpu"] == s["top"][0]["tokens_s_gpu"]
    with (tmp_path / "points.csv").open(newline="") as text:
        assert len(list(csv.DictReader(text))) == len(s["top"]) > 0
