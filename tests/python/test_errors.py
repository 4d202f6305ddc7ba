"""What is wrong, in the words of the command line."""

import copy

import forerun as fr
import pytest


@pytest.mark.parametrize(
    ("old", "new", "key", "line"),
    [
        ("dp_shard: 128", "dp_shard: 127", "parallelism.dp_shard", 5),
        ("micro_batch: 2", "mirco_batch: 2", "training.mirco_batch", 4),
        ("micro_batch: 2", "micro_batch: 0", "training.micro_batch", 4),
        ("global_batch: 256", "global_batch: 300", "training.global_batch", 4),
        ("llama3-8b", "llama3-9b", "model", 3),
        ("compile: true", "compile: maybe", "execution.compile", 6),
        ("nodes: 16", "nodes: 1e3", "cluster.nodes", 2),
        ("model: llama3-8b\n", "", "model", 0),
        ("software: ", "softwares: ", "softwares", 7),
        ("{", "[", "", 2),
    ],
)
def test_a_file_that_is_wrong(command_line, example, tmp_path, old, new, key, line):
    text = example.read_text().replace(old, new)
    path = tmp_path / "wrong.yaml"
    path.write_text(text)
    done = command_line("predict", path)
    assert (done.returncode, done.stdout) == (2, "")
    with pytest.raises(fr.InputError) as caught:
        fr.predict(path)
    error = caught.value
    assert str(error) == done.stderr.rstrip("\n")
    assert isinstance(error, ValueError)
    assert error.source == str(path)
    assert error.line == line
    assert (error.column > 0) == (line > 0)
    assert error.key == key
    assert error.problem and str(error).endswith(error.problem)
    with pytest.raises(fr.InputError, match="wrong.yaml"):
        fr.compare(example, path)


def changed(run, section, **settings):
    out = copy.deepcopy(run)
    out[section] = {**out[section], **settings} if isinstance(out[section], dict) else settings
    return out


def test_a_mapping_that_is_wrong(run):
    for wrong, key, problem in [
        (changed(run, "parallelism", dp_shard=127), "parallelism.dp_shard", "127 ranks on 128 GPUs"),
        (changed(run, "training", mirco_batch=1), "training.mirco_batch", "did you mean 'micro_batch'"),
        (changed(run, "training", micro_batch=2.5), "training.micro_batch", "an integer"),
        (changed(run, "training", micro_batch="2"), "training.micro_batch", "an integer"),
        (changed(run, "training", micro_batch=True), "training.micro_batch", "an integer"),
        (changed(run, "training", micro_batch=float("nan")), "training.micro_batch", "an integer"),
        (changed(run, "training", micro_batch=10**400), "training.micro_batch", "an integer"),
        (changed(run, "training", micro_batch=None), "training.micro_batch", "is missing"),
        (changed(run, "execution", compile="yes"), "execution.compile", "true or false"),
        ({**run, "model": None}, "model", "is missing"),
        ({**run, 1: 2}, "1", "unknown key"),
        ({}, "", "settings are missing"),
    ]:
        with pytest.raises(fr.InputError) as caught:
            fr.predict(wrong)
        error = caught.value
        assert (error.key, error.line, error.column) == (key, 0, 0)
        assert problem in error.problem
        assert error.source == "<mapping>"


def test_a_setting_that_is_wrong(command_line, example):
    done = command_line("predict", example, "--set", "training.micro_batch=0")
    with pytest.raises(fr.InputError) as caught:
        fr.predict(example, set={"training.micro_batch": 0})
    assert str(caught.value) == done.stderr.rstrip("\n")
    assert caught.value.key == "training.micro_batch"


@pytest.mark.parametrize("setting", [{"training.optimizer": "muon"},
                                     {"training.precision": "nvfp4"}])
def test_what_is_not_modelled(command_line, example, run, setting):
    key, value = next(iter(setting.items()))
    text = str(value).replace("'", "")
    done = command_line("predict", example, "--set", f"{key}={text}")
    for source in (example, run):
        with pytest.raises(fr.Unsupported) as caught:
            fr.predict(source, set=setting)
        assert str(caught.value) == done.stderr.rstrip("\n")
        assert isinstance(caught.value, NotImplementedError)


def test_files_that_are_not_there(command_line, tmp_path):
    for path in (tmp_path / "none.yaml", tmp_path, "/dev/zero"):
        done = command_line("predict", path)
        with pytest.raises(fr.InputError) as caught:
            fr.predict(path)
        assert str(caught.value) == done.stderr.rstrip("\n")


@pytest.mark.parametrize("given", [3, None, b"run.yaml", ["run.yaml"]])
def test_things_that_are_no_run(given):
    with pytest.raises(TypeError, match="a path or a mapping is wanted"):
        fr.predict(given)


def test_things_that_a_run_cannot_hold(run):
    with pytest.raises(TypeError, match="a run cannot hold"):
        fr.predict({**run, "model": {1, 2}})
    with pytest.raises(TypeError, match="a run cannot hold"):
        fr.predict(run, set={"model": object()})
    endless = dict(run)
    endless["model"] = endless
    with pytest.raises(ValueError):
        fr.predict(endless)
    deep = run
    for _ in range(100):
        deep = {"model": deep}
    with pytest.raises(fr.InputError, match="nested deeper"):
        fr.predict(deep)


def test_engines(example):
    with pytest.raises(fr.InputError, match="engine: found 'fast', allowed: analytic, des"):
        fr.predict(example, engine="fast")
