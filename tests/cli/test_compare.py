"""Which of several runs is better, by how much, how sure, and which terms make the difference."""

import re

import pytest


@pytest.fixture
def variants(write, example):
    """Files: as the example, eager, with a slow optimiser of memory."""
    text = example.read_text()
    return {
        "a.yaml": write("a.yaml", text),
        "eager.yaml": write("eager.yaml", text.replace("compile: true", "compile: false")),
        "full.yaml": write("full.yaml", text.replace("selective-op", "full")),
        "tp8.yaml": write("tp8.yaml", text.replace("dp_shard: 128", "dp_shard: 16")
                          .replace(" tp: 1", " tp: 8").replace("global_batch: 256", "global_batch: 32")),
    }


def compared(forerun, *files):
    answer = forerun("compare", *files, "--json")
    assert (answer.code, answer.err) == (0, ""), answer.err
    return answer.json()


def test_forecasts_are_those_of_predict(forerun, variants):
    c = compared(forerun, *variants)
    assert [run["name"] for run in c["runs"]] == list(variants)
    for run in c["runs"]:
        alone = forerun("predict", run["name"], "--json").json()
        for key in alone:
            if key not in ("schema_version", "status"):
                assert run[key] == alone[key]


def test_differences_by_term_sum_to_the_difference(forerun, variants):
    c = compared(forerun, *variants)
    assert len(c["comparisons"]) == len(variants) - 1
    first = c["runs"][0]
    for run, comparison in zip(c["runs"][1:], c["comparisons"]):
        assert (comparison["a"], comparison["b"]) == (first["name"], run["name"])
        terms = comparison["difference_s_per_million_tokens_gpu"]
        assert set(terms) == set(first["breakdown_s"])
        difference = 1e6 / run["tokens_s_gpu"] - 1e6 / first["tokens_s_gpu"]
        assert sum(terms.values()) == pytest.approx(difference, rel=1e-9, abs=1e-9)
        assert comparison["speed_ratio_b_over_a"] == pytest.approx(
            run["tokens_s_gpu"] / first["tokens_s_gpu"], rel=1e-12
        )
        assert comparison["mem_delta_gib"] == pytest.approx(
            run["peak_mem_gib"] - first["peak_mem_gib"], abs=1e-9
        )


def test_the_verdict_follows_the_interval(forerun, variants):
    for comparison in compared(forerun, *variants)["comparisons"]:
        low = comparison["speed_ratio_b_over_a_low"]
        ratio = comparison["speed_ratio_b_over_a"]
        high = comparison["speed_ratio_b_over_a_high"]
        assert low < ratio < high
        if low <= 1 <= high:
            assert comparison["verdict"].startswith("too close to call (")
        else:
            better = comparison["a"] if ratio < 1 else comparison["b"]
            gain = max(ratio, 1 / ratio) - 1
            assert re.fullmatch(
                rf"{re.escape(better)} by {100 * gain:.1f}% \(90%: \d+\.\d\.\.\d+\.\d%\)",
                comparison["verdict"],
            )


def test_a_large_difference_is_called(forerun, variants):
    c = compared(forerun, "a.yaml", "tp8.yaml")
    assert c["comparisons"][0]["verdict"].startswith("a.yaml by ")
    back = compared(forerun, "tp8.yaml", "a.yaml")
    assert back["comparisons"][0]["verdict"] == c["comparisons"][0]["verdict"]


def test_a_run_beside_itself(forerun, variants):
    comparison = compared(forerun, "a.yaml", "a.yaml")["comparisons"][0]
    assert comparison["speed_ratio_b_over_a"] == 1
    assert comparison["mem_delta_gib"] == 0
    assert set(comparison["difference_s_per_million_tokens_gpu"].values()) == {0}
    assert comparison["verdict"].startswith("too close to call (+0.0%")


def test_the_engines_agree(forerun, variants):
    analytic = compared(forerun, "a.yaml", "tp8.yaml")
    events = forerun("compare", "a.yaml", "tp8.yaml", "--json", "--engine", "des").json()
    assert events["comparisons"][0]["verdict"] == analytic["comparisons"][0]["verdict"]
    for a, b in zip(analytic["runs"], events["runs"]):
        assert b["step_time_s"] == pytest.approx(a["step_time_s"], rel=1e-9)


def test_set_applies_to_every_run(forerun, variants):
    answer = forerun("compare", "a.yaml", "eager.yaml", "--json", "--set", "training.global_batch=512")
    assert [run["input"]["training"]["global_batch"] for run in answer.json()["runs"]] == [512, 512]


def test_unequal_work_is_said(forerun, variants):
    warnings = compared(forerun, "a.yaml", "tp8.yaml")["warnings"]
    assert any("global batch (256 and 32 sequences)" in warning for warning in warnings)
    assert compared(forerun, "a.yaml", "eager.yaml")["warnings"] == []


def test_text(forerun, variants):
    c = compared(forerun, "a.yaml", "eager.yaml", "tp8.yaml")
    text = forerun("compare", "a.yaml", "eager.yaml", "tp8.yaml").out
    for run in c["runs"]:
        assert f"{run['tokens_s_gpu']:.0f}" in text
    for comparison in c["comparisons"]:
        assert f"{comparison['b']} against {comparison['a']}: {comparison['verdict']}" in text
    for warning in c["warnings"]:
        assert f"warning: {warning}" in text


def test_the_wrong_one_is_named(forerun, variants, write):
    wrong = write("wrong.yaml", "model: llama3-8b\nparalelism: {}\n")
    answer = forerun("compare", "a.yaml", wrong)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("wrong.yaml:2:1: paralelism: unknown key")


def test_other_models_and_long_names_are_told(forerun, variants, write, tmp_path):
    first, *_ = variants
    text = forerun("compare", first, first, "--set", "model=llama3-8b").out
    assert "different models" not in text
    folder = tmp_path / "a-folder-with-a-long-name"
    folder.mkdir()
    names = []
    for name, model in (("first.yaml", "llama3-8b"), ("second.yaml", "llama3-70b")):
        path = folder / name
        path.write_text(f"cluster: {{name: dgx-h100, gpus: 64}}\nmodel: {model}\n"
                        "training: {sequence_length: 4096, micro_batch: 1, global_batch: 64}\n")
        names.append(path)
    answer = forerun("compare", *names)
    assert answer.code == 0 and "are different models" in answer.out + answer.err
    header = answer.out.splitlines()[0]
    assert "first.yaml" in header and "second.yaml" in header
