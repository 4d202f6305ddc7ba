"""The forecast: its keys, its sums, both engines, the trace and the program."""

import collections
import json
import math

import pytest

INTERVALS = ["step_time_s", "tokens_s_gpu", "tflops_gpu", "mfu", "peak_mem_gib"]
TERMS = ["gemm", "attention", "pointwise", "cast", "optimizer", "exposed_tp", "exposed_cp",
         "exposed_ep", "exposed_pp", "exposed_dp", "bubble", "host", "recompute", "interference",
         "other"]
MEMORY = ["reserved_gib", "allocated_gib", "active_gib", "device_gib", "resident_gib"]

# Plans of the example's 128 GPUs that use each kind of parallelism.
PLANS = {
    "fsdp": [],
    "eager": ["execution.compile=false"],
    "fp8": ["training.precision=fp8-tensorwise"],
    "full recompute": ["execution.recompute=full"],
    "accumulation": ["training.global_batch=1024"],
    "tp": ["parallelism={dp_shard: 16, tp: 8}", "training.global_batch=64"],
    "async tp": ["parallelism={dp_shard: 16, tp: 8}", "training.global_batch=64",
                 "execution.async_tp=true"],
    "cp": ["parallelism={dp_shard: 16, cp: 8}", "training.global_batch=32",
           "training.sequence_length=65536"],
    "1f1b": ["parallelism={dp_shard: 16, pp: 8}", "training.global_batch=256",
             "training.micro_batch=1"],
    "interleaved": ["parallelism={dp_shard: 16, pp: 8, schedule: interleaved-1f1b}",
                    "training.global_batch=256", "training.micro_batch=1"],
    "3d": ["parallelism={dp_shard: 8, tp: 4, pp: 4}", "training.global_batch=128"],
}


@pytest.fixture(params=PLANS)
def sets(request):
    return [f"--set={setting}" for setting in PLANS[request.param]]


def forecast(forerun, example, *arguments):
    answer = forerun("predict", example, "--json", *arguments)
    assert (answer.code, answer.err) == (0, ""), answer.err
    return answer.json()


def test_keys(forerun, example):
    f = forecast(forerun, example)
    wanted = [*INTERVALS, *[k + end for k in INTERVALS for end in ("_low", "_high")], *MEMORY,
              "fits", "p_fits", "breakdown_s", "memory_gib", "stages", "warnings", "assumptions",
              "input", "profile", "software", "schema_version", "status"]
    assert set(wanted) <= set(f)
    assert list(f["breakdown_s"]) == TERMS
    assert {"gpus", "dp", "microbatches", "layers_per_stage"} <= set(f["input"]["derived"])
    assert set(f["profile"]) == {"id", "date"}
    assert f["software"] == {"id": "torchtitan-2024-12", "date": "2024-12"}
    assert "event_fingerprint" not in f  # of the event engine


def test_derived_input(forerun, example):
    derived = forecast(forerun, example, *[f"--set={s}" for s in PLANS["3d"]])["input"]["derived"]
    assert derived["gpus"] == 128
    assert derived["dp"] == 8
    assert derived["microbatches"] == 128 // (2 * 8)
    assert derived["layers_per_stage"] == [8, 8, 8, 8]
    assert derived["parameters_total"] == 8_030_261_248  # as published for Llama-3.1-8B


def test_numbers_agree_with_each_other(forerun, example, sets):
    f = forecast(forerun, example, *sets)
    training, derived = f["input"]["training"], f["input"]["derived"]
    tokens = training["global_batch"] * training["sequence_length"]
    assert f["tokens_s_gpu"] == pytest.approx(tokens / derived["gpus"] / f["step_time_s"], rel=1e-12)
    for key in INTERVALS:
        assert 0 < f[f"{key}_low"] <= f[key] <= f[f"{key}_high"]
    assert sum(f["breakdown_s"].values()) == pytest.approx(f["step_time_s"], rel=1e-9)
    assert min(f["breakdown_s"].values()) >= -1e-12
    assert sum(f["memory_gib"].values()) == pytest.approx(f["allocated_gib"], rel=1e-9)
    assert f["peak_mem_gib"] == f["reserved_gib"]
    assert f["resident_gib"] <= f["allocated_gib"] <= f["active_gib"] <= f["reserved_gib"]
    assert f["reserved_gib"] < f["device_gib"]
    assert f["fits"] == (f["device_gib"] <= f["fit"]["gpu_memory_gib"])
    assert 0 <= f["p_fits"] <= 1
    assert 0 < f["mfu"] < 1
    assert f["tflops_gpu"] < f["tflops_gpu_full_attention"]


def test_stages(forerun, example, sets):
    f = forecast(forerun, example, *sets)
    plan = f["input"]["parallelism"]
    stages = f["stages"]
    assert len(stages) == plan["pp"] * plan.get("virtual_stages", 1)
    assert [s["stage"] for s in stages] == list(range(len(stages)))
    assert [s["rank"] for s in stages] == [i % plan["pp"] for i in range(len(stages))]
    assert [s["layers"] for s in stages] == f["input"]["derived"]["layers_per_stage"]
    assert sum(s["layers"] for s in stages) == 32
    assert max(s["reserved_gib"] for s in stages) == f["peak_mem_gib"]
    assert max(s["end_s"] for s in stages) <= f["step_time_s"]


def test_the_engines_agree(forerun, example, sets):
    analytic = forecast(forerun, example, *sets)
    events = forecast(forerun, example, *sets, "--engine", "des")
    assert (analytic["engine"], events["engine"]) == ("analytic", "des")
    assert events["step_time_s"] == pytest.approx(analytic["step_time_s"], rel=1e-9)
    for a, b in zip(analytic["stages"], events["stages"]):
        assert b["end_s"] == pytest.approx(a["end_s"], rel=1e-9)
    for key in (*MEMORY, "peak_mem_gib", "memory_gib", "fits"):
        assert events[key] == analytic[key]
    assert [s["reserved_gib"] for s in events["stages"]] == [
        s["reserved_gib"] for s in analytic["stages"]
    ]
    assert len(events["event_fingerprint"]) == 16
    int(events["event_fingerprint"], 16)
    assert forecast(forerun, example, *sets, "--engine", "des") == events


def test_the_resolved_input_is_a_run(forerun, write, example, sets):
    """Running `input` again gives the same forecast; only the name of the model is not kept."""
    f = forecast(forerun, example, *sets)
    again = {key: value for key, value in f["input"].items() if key != "derived"}
    g = forecast(forerun, write("again.json", json.dumps(again)))
    assert g["input"] == f["input"]
    for key in (*INTERVALS, *MEMORY, "breakdown_s", "memory_gib", "stages", "p_fits"):
        assert g[key] == f[key]


def test_odd_settings_survive_in_the_resolved_input(forerun, write, example):
    f = forecast(forerun, example, "--set", "cluster.gpu.memory=81559 MiB",
                 "--set", "cluster.nic.bandwidth=123.456789 Gb/s",
                 "--set", "parallelism={dp_shard: 32, pp: 4, stage_layers: [5, 9, 9, 9]}",
                 "--set", "training.micro_batch=1", "--set", "measured.allgather_busbw=33.3 GB/s")
    again = {key: value for key, value in f["input"].items() if key != "derived"}
    assert again["parallelism"]["stage_layers"] == [5, 9, 9, 9]
    g = forecast(forerun, write("again.json", json.dumps(again)))
    assert (g["input"], g["step_time_s"], g["fit"]) == (f["input"], f["step_time_s"], f["fit"])


def test_measured_bandwidth_changes_times_alone(forerun, example):
    plain = forecast(forerun, example)
    slow = forecast(forerun, example, "--set", "measured.allgather_busbw=5 GB/s")
    assert slow["step_time_s"] > 1.2 * plain["step_time_s"]
    for key in (*MEMORY, "memory_gib", "fits", "p_fits"):
        assert slow[key] == plain[key]


def test_assumptions_are_what_the_input_left_open(forerun, example):
    f = forecast(forerun, example, "--set", "execution={}", "--set", "software=null")
    assumed = {a["key"]: a["value"] for a in f["assumptions"]}
    assert assumed["software"] == "generic"
    assert assumed["execution.compile"] == "false"
    assert assumed["execution.recompute"] == "none"
    assert all(a["why"] for a in f["assumptions"])
    assert f["top_assumption"].split("=")[0] in assumed
    stated = forecast(forerun, example, "--set", "execution.compile=false")
    assert "execution.compile" not in {a["key"] for a in stated["assumptions"]}


def test_text_says_what_the_json_says(forerun, example, sets):
    f = forecast(forerun, example, *sets)
    text = forerun("predict", example, *sets).out
    assert text.startswith("llama3-8b on 128 x h100-sxm-95gb, torchtitan-2024-12\n")
    assert f"{f['step_time_s']:.3f} s" in text
    assert f"(90%: {f['tokens_s_gpu_low']:.0f} to {f['tokens_s_gpu_high']:.0f})" in text
    assert f"{f['peak_mem_gib']:.1f} GiB" in text
    assert ("DOES NOT FIT" in text) == (not f["fits"])
    for term, seconds in f["breakdown_s"].items():
        if seconds > 1e-3 * f["step_time_s"]:
            assert term in text
    for warning in f["warnings"]:
        assert warning in text
    for assumption in f["assumptions"]:
        assert f"{assumption['key']} = {assumption['value']} ({assumption['why']})" in text


# ---- what does not fit -------------------------------------------------------------------------


def test_does_not_fit_is_an_answer(forerun, example):
    too_much = ["--set", "model=llama3-405b"]
    f = forecast(forerun, example, *too_much)
    assert f["fits"] is False
    assert f["p_fits"] < 0.01
    short = f["device_gib"] - f["fit"]["gpu_memory_gib"]
    assert short > 0
    assert f["fit"]["margin_gib"] == pytest.approx(-short)
    assert f["fit"]["peak_at"].startswith("stage 0, ")
    largest = max(f["memory_gib"], key=f["memory_gib"].get)
    answer = forerun("predict", example, *too_much)
    assert answer.code == 0
    assert f"DOES NOT FIT: {short:.1f} GiB short of 95.0" in answer.out
    assert f"largest at the peak of rank 0: {largest}, {f['memory_gib'][largest]:.1f} GiB" in answer.out
    assert f["fit"]["peak_at"] in answer.out


# ---- --require ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("condition", "met"),
    [
        ("fits", True),
        ("fits && peak_mem_gib < 75", True),
        ("!fits || mfu > 0.9", False),
        ("tokens_s_gpu >= 1 && (mfu_low > 0.9 || step_time_s < 1e6)", True),
        ("peak_mem_gib_high < 1", False),
    ],
)
def test_require(forerun, example, condition, met):
    for output in ([], ["--json"]):
        answer = forerun("predict", example, "--require", condition, *output)
        assert answer.code == (0 if met else 3)
        assert answer.out == forerun("predict", example, *output).out
        assert answer.err == ("" if met else f"warning: not met: {condition}\n")


@pytest.mark.parametrize("condition", ["", "fits &&", "mfu >", "nonsense > 1", "(fits", "fits)", "mfu 3"])
def test_require_that_is_no_condition(forerun, example, condition):
    answer = forerun("predict", example, "--require=" + condition, "--json")
    if condition == "":
        return  # as if it were not given
    assert answer.code == 2
    assert answer.json()["status"].startswith("invalid: --require:1:")
    assert forerun("predict", example, "--require=" + condition).out == ""


# ---- --trace, --program ------------------------------------------------------------------------


def test_trace(forerun, example, sets, tmp_path):
    f = forecast(forerun, example, *sets, "--trace", "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    plan = f["input"]["parallelism"]
    threads = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    processes = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert list(processes) == list(range(plan["pp"]))
    for rank, name in processes.items():
        assert name.startswith(f"rank {rank}: stage {rank}")
    for (rank, _), name in threads.items():
        stage, number, stream = name.split()
        assert (stage, int(number)) == ("stage", rank)
        assert stream in ("host", "compute", "fsdp", "tp", "cp", "pp")
    tracks = collections.defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            assert event["dur"] >= 0 and event["name"] and event["cat"]
            tracks[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    assert set(tracks) <= set(threads)
    assert {(rank, threads[rank, tid].split()[-1]) for rank, tid in tracks} >= {
        (rank, stream) for rank in range(plan["pp"]) for stream in ("host", "compute")
    }
    rounding = 2e-6  # microseconds; times have six digits behind the point
    for spans in tracks.values():
        spans.sort()
        for (_, end), (begin, _) in zip(spans, spans[1:]):
            assert begin >= end - rounding
    last = max(end for spans in tracks.values() for _, end in spans)
    assert last == pytest.approx(1e6 * f["step_time_s"], rel=1e-6)


def test_program_is_a_tree(forerun, example, sets, tmp_path):
    f = forecast(forerun, example, *sets, "--program", "program.json")
    program = json.loads((tmp_path / "program.json").read_text())
    assert program["schema_version"] == 1
    assert program["microbatches"] == f["input"]["derived"]["microbatches"]
    assert [s["stage"] for s in program["stages"]] == [s["stage"] for s in f["stages"]]
    used = set()
    for stage in program["stages"]:
        for chain in stage["chains"].values():
            for link in chain:
                assert link["count"] >= 1
                used.add(str(link["block"]))
    assert used == set(program["blocks"])
    slots = {"host", "compute", "fsdp", "tp", "cp", "pp", "none", "gathered", "gathered_next", "reduced"}
    for block in program["blocks"].values():
        assert block["host_seconds"] >= 0
        assert block["memory_peak"] >= max(0, block["memory_net"])
        for i, operation in enumerate(block["operations"]):
            assert operation["stream"] in slots
            assert operation["category"] in TERMS
            assert operation["seconds"] >= 0 and math.isfinite(operation["seconds"])
            assert all(0 <= before < i for before in operation.get("after", []))
            assert set(operation.get("waits", [])) <= slots
    assert len(program["schedule"]["ranks"]) == f["input"]["parallelism"]["pp"]
    for rank in program["schedule"]["ranks"]:
        forwards = actions(program, rank, "forward")
        assert forwards == program["microbatches"] * len(f["stages"]) // f["input"]["parallelism"]["pp"]


def actions(program, rank, kind):
    """Actions of a kind that a rank runs in a step."""
    def count(part):
        return sum(action["action"].startswith(kind) for action in part)

    repeats = program["schedule"]["cycle_repeats"]
    return count(rank["prefix"]) + repeats * count(rank["cycle"]) + count(rank["suffix"])
