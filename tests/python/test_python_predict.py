"""predict and compare: the numbers of the command line, to the last digit."""

import pathlib
import types

import forerun as fr
import pytest

SETS = [
    {},
    {"execution.compile": False},
    {"parallelism": {"dp_shard": 16, "tp": 8}, "training.global_batch": 64},
    {"parallelism": {"dp_shard": 16, "pp": 8}, "training.micro_batch": 1},
    {"cluster.nic.bandwidth": "200 Gb/s", "parallelism.mesh_order": ["pp", "cp", "dp_shard", "dp_replicate", "tp"]},
    {"model": "llama3-405b"},  # does not fit
]


def as_options(sets):
    """The same settings on the command line."""
    def text(value):
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, dict):
            return "{" + ", ".join(f"{k}: {text(v)}" for k, v in value.items()) + "}"
        if isinstance(value, list):
            return "[" + ", ".join(map(text, value)) + "]"
        return str(value)

    return [f"--set={key}={text(value)}" for key, value in sets.items()]


@pytest.mark.parametrize("sets", SETS)
@pytest.mark.parametrize("engine", ["analytic", "des"])
def test_predict_is_the_command_line(document, example, run, sets, engine):
    expected = document("predict", example, "--engine", engine, *as_options(sets))
    for source in (str(example), example, run, types.MappingProxyType(run)):
        f = fr.predict(source, set=sets, engine=engine)
        assert isinstance(f, fr.Forecast)
        assert f.to_dict() == expected


@pytest.mark.parametrize("sets", SETS)
def test_compare_is_the_command_line(document, tmp_path, example, run, sets):
    other = tmp_path / "other.yaml"
    other.write_text(example.read_text().replace("selective-op", "full"))
    c = fr.compare(example, other, set=sets)
    assert isinstance(c, fr.Comparison)
    assert c.to_dict() == document("compare", example, other, *as_options(sets))


def test_compare_takes_mappings_and_lists(run):
    slow = {**run, "execution": {**run["execution"], "recompute": "full"}}
    c = fr.compare(run, slow)
    assert [r.name for r in c.runs] == ["<mapping 1>", "<mapping 2>"]
    assert c.comparisons[0].a == "<mapping 1>"
    assert fr.compare([run, slow]) == c
    assert fr.compare((run, slow)) == c
    assert c.comparisons[0].speed_ratio_b_over_a == pytest.approx(
        fr.predict(slow).tokens_s_gpu / fr.predict(run).tokens_s_gpu, rel=1e-12
    )
    terms = c.comparisons[0].difference_s_per_million_tokens_gpu
    difference = 1e6 / c.runs[1].tokens_s_gpu - 1e6 / c.runs[0].tokens_s_gpu
    assert sum(terms.values()) == pytest.approx(difference, rel=1e-9)
    assert len(fr.compare(run, slow, run).comparisons) == 2


@pytest.mark.parametrize("few", [[], ["a.yaml"], [{}]])
def test_compare_wants_two(few):
    with pytest.raises(TypeError, match="at least two runs"):
        fr.compare(*few)


def test_data_of_your_own(tmp_path, run):
    models = tmp_path / "workloads" / "catalog" / "models"
    models.mkdir(parents=True)
    (models / "mine.yaml").write_text(
        "source: a test\nlayers: 2\nhidden: 256\nffn_hidden: 512\nheads: 4\nvocab: 1000\n"
    )
    own = {**run, "model": "mine"}
    for data in ([tmp_path], (str(tmp_path),), tmp_path, str(tmp_path)):
        assert fr.predict(own, data=data).input.model.layers == 2
    with pytest.raises(fr.InputError, match="is no folder"):
        fr.predict(own, data=[tmp_path / "none"])
    with pytest.raises(fr.InputError, match="unknown model 'mine'"):
        fr.predict(own)


def test_paths_inside_a_mapping(tmp_path, run):
    path = tmp_path / "mine.yaml"
    path.write_text("layers: 2\nhidden: 256\nffn_hidden: 512\nheads: 4\nvocab: 1000\n")
    assert fr.predict({**run, "model": path}).input.model.layers == 2
    assert fr.predict(run, set={"model": pathlib.Path(path)}).input.model.layers == 2


def test_an_inline_model_and_units(run):
    f = fr.predict({
        **run,
        "model": {"layers": 4, "hidden": 512, "ffn_hidden": 1024, "heads": 8, "vocab": 32000},
        "cluster": {"gpus": 8, "gpu": {"name": "h100-sxm-80gb", "memory": "64 GiB"}},
        "parallelism": {"dp_shard": -1},
    })
    assert f.fit.gpu_memory_gib == 64
    assert f.input.derived.gpus == 8


def test_numpy_numbers_are_numbers(run):
    numpy = pytest.importorskip("numpy")
    plain = fr.predict(run)
    training = {**run["training"], "sequence_length": numpy.int64(8192), "micro_batch": numpy.int32(2),
                "global_batch": numpy.uint16(256)}
    execution = {**run["execution"], "compile": numpy.bool_(True)}
    assert fr.predict({**run, "training": training, "execution": execution}) == plain
    assert fr.predict(run, set={"training.micro_batch": numpy.int8(2)}) == plain
    cluster = {**run["cluster"], "oversubscription": numpy.float64(1.0)}
    assert fr.predict({**run, "cluster": cluster}).step_time_s == plain.step_time_s
    four = {**run, "parallelism": {"dp_shard": 32, "pp": 4, "stage_layers": numpy.array([7, 9, 9, 7])}}
    assert fr.predict(four).input.derived.layers_per_stage == [7, 9, 9, 7]
    with pytest.raises(fr.InputError, match=r"training.micro_batch: found '2.5'"):
        fr.predict(run, set={"training.micro_batch": numpy.float32(2.5)})
    for value in numpy.array([plain.step_time_s, plain.mfu]):  # answers are plain floats
        assert type(plain.step_time_s) is float
        assert value > 0
