"""What every verb takes, exit codes, and where output goes."""

import json
import subprocess

import pytest
from conftest import BINARY

VERBS = ["predict", "compare", "sweep", "mesh", "validate", "model"]

SWEEP = """
run: {run}
space:
  parallelism.tp: [1, 2]
  parallelism.dp_shard: [-1]
  training.micro_batch: [1, 2]
"""


@pytest.fixture
def sweep_file(write, example):
    return write("sweep.yaml", SWEEP.format(run=example))


@pytest.fixture
def arguments(example, runs, sweep_file):
    """Of each verb, so that it answers."""
    return {
        "predict": ["predict", example],
        "compare": ["compare", example, example],
        "sweep": ["sweep", sweep_file],
        "mesh": ["mesh", example],
        "validate": ["validate", runs],
        "model": ["model", "llama3-8b"],
    }


def test_version(forerun):
    answer = forerun("--version")
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.startswith("forerun ")
    assert answer.out.split()[1].count(".") == 2


def test_help_names_the_verbs(forerun):
    answer = forerun("--help")
    assert (answer.code, answer.err) == (0, "")
    for verb in VERBS:
        assert f"  {verb} " in answer.out


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_a_verb(forerun, verb):
    answer = forerun(verb, "--help")
    assert (answer.code, answer.err) == (0, "")
    for option in ("--json", "--data", "-o,--out", "--seed", "-q", "-v"):
        assert option in answer.out
    assert forerun(verb, "-h").out == answer.out
    reads_a_run = verb in ("predict", "compare", "sweep", "mesh")
    assert ("--set" in answer.out) == reads_a_run


@pytest.mark.parametrize("verb", VERBS)
def test_json_is_one_document(forerun, arguments, verb):
    answer = forerun(*arguments[verb], "--json")
    assert (answer.code, answer.err) == (0, "")
    document = answer.json()
    assert document["schema_version"] == 1
    assert document["status"] == "ok"


@pytest.mark.parametrize("verb", VERBS)
def test_text_is_no_json(forerun, arguments, verb):
    answer = forerun(*arguments[verb])
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.endswith("\n")
    with pytest.raises(ValueError):
        json.loads(answer.out)


@pytest.mark.parametrize("verb", ["predict", "compare", "mesh", "model"])
@pytest.mark.parametrize("json_or_not", [[], ["--json"]])
def test_out_is_the_answer_in_a_file(forerun, arguments, tmp_path, verb, json_or_not):
    expected = forerun(*arguments[verb], *json_or_not).out
    for option in (["-o", "answer"], ["--out", "answer"], ["--out=answer"]):
        answer = forerun(*arguments[verb], *json_or_not, *option)
        assert (answer.code, answer.out, answer.err) == (0, "", "")
        assert (tmp_path / "answer").read_text() == expected
        (tmp_path / "answer").unlink()
    assert forerun(*arguments[verb], *json_or_not, "-o", "-").out == expected


@pytest.mark.parametrize("verb", ["predict", "sweep", "mesh"])
def test_dash_is_standard_input(forerun, arguments, example, sweep_file, tmp_path, verb):
    file = tmp_path / sweep_file if verb == "sweep" else example
    answer = forerun(verb, "-", "--json", stdin=file.read_text())
    expected = forerun(verb, file, "--json").json()
    document = answer.json()
    expected.pop("seconds", None), document.pop("seconds", None)
    assert (answer.code, document) == (0, expected)
    wrong = forerun(verb, "-", stdin="model: llama3-8b\nnonsense: 1\n")
    assert wrong.code == 2
    assert wrong.err.startswith("<stdin>:")


def test_dash_for_a_table(forerun, runs):
    assert forerun("validate", "-", stdin=runs.read_text()).out == forerun("validate", runs).out


def test_the_example_gives_the_same_bytes_again(forerun, example):
    answers = {forerun("predict", example, "--json", *seed).out
               for seed in ([], [], ["--seed", 1], ["--seed", 18446744073709551615])}
    assert len(answers) == 1


@pytest.mark.parametrize("option", [["-q"], ["-v"], ["-q", "-v"], ["--quiet"], ["--verbose"]])
def test_quiet_and_verbose_change_no_answer(forerun, example, option):
    answer = forerun("predict", example, *option)
    assert (answer.code, answer.out) == (0, forerun("predict", example).out)


def test_quiet_keeps_warnings_off_standard_error(forerun, example):
    not_met = ("predict", example, "--require", "mfu > 0.99")
    assert forerun(*not_met).err != ""
    assert forerun(*not_met, "-q").err == ""
    assert forerun(*not_met, "-q").code == 3


# ---- --set -------------------------------------------------------------------------------------


def test_set_changes_the_run(forerun, example):
    run = forerun("predict", example, "--json", "--set", "training.micro_batch=1",
                  "--set", "training.global_batch=128", "--set=execution.compile=false").json()
    assert run["input"]["training"]["micro_batch"] == 1
    assert run["input"]["training"]["global_batch"] == 128
    assert run["input"]["execution"]["compile"] is False


def test_the_last_set_wins(forerun, example):
    run = forerun("predict", example, "--json", "--set", "execution.compile=false",
                  "--set", "execution.compile=true").json()
    assert run["input"]["execution"]["compile"] is True


def test_set_takes_lists_mappings_and_units(forerun, example):
    run = forerun("predict", example, "--json",
                  "--set", "cluster={name: dgx-h100, nodes: 16}",
                  "--set", "cluster.nic.bandwidth=200 Gb/s",
                  "--set", "parallelism.mesh_order=[pp, cp, dp_replicate, dp_shard, tp]").json()
    assert run["input"]["cluster"]["name"] == "dgx-h100"
    assert run["input"]["cluster"]["nic"]["bandwidth"] == "25 GB/s"
    assert run["input"]["parallelism"]["mesh_order"][1] == "cp"


def test_set_gives_what_a_file_lacks(forerun, write, example):
    part = write("part.yaml", "execution: {recompute: selective-op, compile: true}\n")
    sets = ["cluster.name=grand-teton-h100-95gb", "cluster.gpus=128", "model=llama3-8b",
            "training={sequence_length: 8192, micro_batch: 2, global_batch: 256}",
            "parallelism.dp_shard=128", "software=torchtitan-2024-12"]
    answer = forerun("predict", part, "--json", *[f"--set={s}" for s in sets]).json()
    assert answer["step_time_s"] == forerun("predict", example, "--json").json()["step_time_s"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("training.micro_batch", "--set: training.micro_batch: dotted.key=value is wanted"),
        ("=3", "--set: =3: dotted.key=value is wanted"),
        ("training..micro_batch=3", "an empty part in a dotted key"),
        ("training.micro_batch=0", "training.micro_batch: found 0, must be at least 1"),
        ("training.mirco_batch=1", "training.mirco_batch: unknown key (did you mean 'micro_batch'?)"),
        ("model.hidden=4096", "model.hidden: cannot be set inside 'llama3-8b'"),
        ("training={", "not valid YAML"),
    ],
)
def test_set_that_is_wrong(forerun, example, given, said):
    answer = forerun("predict", example, "--set", given)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("--set")
    assert said in answer.err


# ---- --data ------------------------------------------------------------------------------------


def test_data_of_your_own_comes_first(forerun, tmp_path, write, example):
    models = tmp_path / "own" / "workloads" / "catalog" / "models"
    models.mkdir(parents=True)
    (models / "mine.yaml").write_text(
        "source: a test\nlayers: 2\nhidden: 256\nffn_hidden: 512\nheads: 4\nvocab: 1000\n"
    )
    (models / "llama3-8b.yaml").write_text((models / "mine.yaml").read_text())
    assert forerun("model", "mine").code == 2
    assert forerun("model", "mine", "--data", "own", "--json").json()["layers"] == 2
    assert forerun("model", "llama3-8b", "--data", "own", "--json").json()["layers"] == 2
    assert forerun("model", "llama3-8b", "--json").json()["layers"] == 32
    environment = {"FORERUN_DATA": str(tmp_path / "own")}
    assert forerun("model", "mine", "--json", env=environment).json()["layers"] == 2
    mine = forerun("predict", example, "--set", "model=mine", "--data", "own", "--json")
    assert mine.json()["input"]["model"]["layers"] == 2


def test_data_must_be_a_folder(forerun, example):
    answer = forerun("predict", example, "--data", "nowhere")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err == "nowhere: is no folder; a folder of data is wanted\n"


# ---- wrong arguments ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "a verb is wanted: predict, "),
        (["predic", "run.yaml"], "unknown verb 'predic' (did you mean 'predict'?); known: predict, "),
        (["--bogus"], "unknown option '--bogus'"),
        (["predict"], "RUN is required; see forerun predict --help"),
        (["predict", "a.yaml", "b.yaml"], "RUN: at most 1 required but received 2"),
        (["compare", "a.yaml"], "RUN: at least 2 required but received 1"),
        (["predict", "a.yaml", "--jsn"], "unknown option '--jsn' (did you mean '--json'?)"),
        (["predict", "a.yaml", "--engin", "des"], "unknown option '--engin' (did you mean '--engine'?)"),
        (["predict", "a.yaml", "--engine", "dea"], "--engine: found 'dea', allowed: analytic, des"),
        (["predict", "a.yaml", "--network", "flows"], "--network: found 'flows', allowed: none, flow"),
        (["predict", "a.yaml", "--seed", "-1"], "--seed: found '-1', a whole number is wanted"),
        (["predict", "a.yaml", "--set"], "--set: 1 required KEY=VALUE missing"),
        (["sweep", "a.yaml", "--top", "0"], "--top: value 0 not in range 1 to 100000"),
    ],
)
def test_wrong_arguments(forerun, given, said):
    answer = forerun(*given)
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err
    assert answer.err[0].islower() or answer.err.startswith(("RUN", "-"))
    if given:
        verb, *rest = given
        document = forerun(verb, "--json", *rest)
        assert document.code == 2
        assert document.json()["status"].startswith("invalid: ")
        assert document.json()["schema_version"] == 1


def test_what_is_not_modelled(forerun, example):
    for option in (["--network", "flow"], ["--anchor", "runs.csv"], ["--why"],
                   ["--set", "training.precision=nvfp4"]):
        answer = forerun("predict", example, *option)
        assert (answer.code, answer.out) == (2, "")
        assert answer.err.startswith("unsupported: ")
        document = forerun("predict", example, *option, "--json")
        assert (document.code, document.err) == (2, answer.err)
        assert document.json() == {"status": answer.err.strip(), "schema_version": 1}


def test_names_that_are_not_utf8(forerun):
    for given in (["predict", b"\xff\xfe.yaml"], [b"\xffverb"], ["model", b"\xff"]):
        answer = forerun(*given, "--json")
        assert answer.code == 2
        assert answer.json()["status"].startswith("invalid: ")


# ---- output that cannot be written -------------------------------------------------------------


@pytest.mark.parametrize("path", ["/nowhere/answer", "/", "/dev/full"])
@pytest.mark.parametrize("option", ["--out", "--trace", "--program"])
def test_files_that_cannot_be_written(forerun, example, option, path):
    answer = forerun("predict", example, option, path)
    assert answer.code == 2
    assert answer.err.startswith(f"{path}: cannot be written: ")


def test_standard_output_that_is_full(example):
    with open("/dev/full", "w") as full:
        done = subprocess.run([BINARY, "predict", example], stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 2
    assert done.stderr.startswith(b"standard output: cannot be written: ")
