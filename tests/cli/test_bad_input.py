"""Wrong, odd and hostile input: what the answer says, and that nothing crashes, hangs or grows."""

import csv
import json
import os
import pathlib
import random
import re
import resource
import signal
import subprocess
import tempfile
import time

import pytest
from conftest import BINARY, EXAMPLE, ROOT

BAD = ROOT / "tests" / "data" / "bad"
SECONDS = 10
KIB = 1 << 20  # 1 GiB of resident memory


def table():
    """file, verb, exit code, and regular expressions that the output must hold and must not."""
    with (BAD / "index.csv").open(newline="") as text:
        return list(csv.DictReader(text))


def patterns(cell):
    return [pattern for pattern in cell.split(" ;; ") if pattern]


def case_name(row):
    return f"{row['verb']} {row['file']}"


@pytest.mark.parametrize("row", table(), ids=case_name)
def test_file(forerun, row):
    answer = forerun(row["verb"], BAD / row["file"], timeout=SECONDS)
    said = answer.err + answer.out
    assert answer.code == int(row["exit"]), said
    for pattern in patterns(row["must"]):
        assert re.search(pattern, said, re.MULTILINE), f"{pattern} is not in: {said}"
    for pattern in patterns(row["must_not"]):
        assert not re.search(pattern, said, re.MULTILINE), f"{pattern} is in: {said}"


@pytest.mark.parametrize("row", table(), ids=case_name)
def test_file_as_json(forerun, row):
    answer = forerun(row["verb"], BAD / row["file"], "--json", timeout=SECONDS)
    assert answer.code == int(row["exit"])
    document = answer.json()
    assert document["schema_version"] == 1
    if answer.code == 0:
        assert document["status"] == "ok"
    else:
        assert document["status"].startswith(("invalid: ", "unsupported: "))
        assert document["status"].removeprefix("invalid: ") == answer.err.rstrip("\n")


def test_every_file_is_in_the_table():
    files = {path.name for path in BAD.iterdir()} - {"index.csv"}
    assert files == {row["file"] for row in table()}


# ---- the same run in other encodings -----------------------------------------------------------


def answer_of(forerun, write, content):
    return forerun("predict", write("run.yaml", content))


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda text: b"\xef\xbb\xbf" + text, id="byte order mark"),
        pytest.param(lambda text: text.replace(b"\n", b"\r\n"), id="CRLF"),
        pytest.param(lambda text: text.rstrip(b"\n"), id="no newline at the end"),
        pytest.param(lambda text: text + b"\n\n# more\n", id="blank lines and a comment"),
        pytest.param(lambda text: "# naïve 計算\n".encode() + text, id="UTF-8 comment"),
    ],
)
def test_same_run_in_other_bytes(forerun, write, change):
    plain = EXAMPLE.read_bytes()
    expected = answer_of(forerun, write, plain)
    answer = answer_of(forerun, write, change(plain))
    assert (answer.code, answer.out, answer.err) == (0, expected.out, "")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param(b"", r"run\.yaml: the file is empty", id="empty"),
        pytest.param(b" \n\n", r"run\.yaml: the file holds no settings", id="blank"),
        pytest.param("model: é\n".encode("utf-16"), r"UTF-16.*UTF-8 is wanted", id="UTF-16"),
        pytest.param("model: x # \xe9t\xe9\n".encode("latin-1"), r"run\.yaml:1:12: byte 11 \(0xE9\)",
                     id="Latin-1"),
        pytest.param(b"model: lla\0ma\n", r"run\.yaml:1:11: byte 10 \(0x00\)", id="NUL"),
        pytest.param(b"model: \xc0\xaf\n", r"run\.yaml:1:8: byte 7 \(0xC0\)", id="overlong UTF-8"),
        pytest.param(b"model: 'llama\n", r"run\.yaml:\d+:\d+: not valid YAML", id="open quote"),
        pytest.param(b"model: [a, b\n", r"run\.yaml:\d+:\d+: not valid YAML", id="open bracket"),
        pytest.param(b"just words\n", r"run\.yaml:1:1: found 'just words', a mapping", id="words"),
        pytest.param(b"{\"model\": \"llama3-8b\",}\n", r"missing", id="JSON with only a model"),
    ],
)
def test_bytes_that_are_no_run(forerun, write, content, said):
    answer = answer_of(forerun, write, content)
    assert answer.code == 2
    assert re.search(said, answer.err), answer.err
    assert answer.out == ""


# ---- too large, too deep, no file at all -------------------------------------------------------


def watched(arguments, **options):
    """Exit code, output and error of a run that is held to the limits of time and memory."""
    begin = time.monotonic()
    done = subprocess.run([BINARY, *arguments], capture_output=True, timeout=SECONDS, **options)
    assert time.monotonic() - begin < SECONDS
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < KIB
    return done.returncode, done.stdout.decode(), done.stderr.decode()


VERBS = ["predict", "model", "sweep", "mesh", "validate"]


@pytest.mark.parametrize("verb", VERBS)
def test_one_line_of_50_megabytes(verb, tmp_path):
    file = tmp_path / "long.yaml"
    file.write_bytes(b"model: " + b"a" * 50_000_000)
    code, out, err = watched([verb, file])
    assert (code, out) == (2, "")
    assert len(err) < 1000
    assert re.search(r"larger than the limit of \d+ MiB|no such column", err)


def test_a_name_of_three_megabytes_is_not_repeated(tmp_path):
    file = tmp_path / "long.yaml"
    file.write_text(EXAMPLE.read_text().replace("llama3-8b", "llama" * 600_000))
    code, out, err = watched(["predict", file])
    assert (code, out) == (2, "")
    assert "unknown model 'llama" in err
    assert len(err) < 1000


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("[" * 10_000 + "]" * 10_000, id="lists"),
        pytest.param('{"a":' * 10_000 + "1" + "}" * 10_000, id="objects"),
        pytest.param("model: " + "[" * 10_000 + "]" * 10_000, id="flow in YAML"),
        pytest.param("".join(" " * i + "a:\n" for i in range(1500)), id="indented mappings"),
        pytest.param("- " * 10_000 + "a\n", id="lists in one line"),
        pytest.param("? " * 10_000 + "a\n", id="keys that are mappings"),
    ],
)
@pytest.mark.parametrize("verb", ["predict", "model", "sweep"])
def test_deep_nesting(verb, content, tmp_path):
    file = tmp_path / "deep.yaml"
    file.write_text(content)
    code, out, err = watched([verb, file])
    assert (code, out) == (2, "")
    assert re.search(r"deep\.yaml:\d+:\d+: nested deeper than \d+ levels", err), err


def test_100_000_unknown_keys(tmp_path):
    file = tmp_path / "many.json"
    file.write_text(json.dumps({f"key_{i}": i for i in range(100_000)}))
    code, out, err = watched(["predict", file])
    assert (code, out) == (2, "")
    assert re.search(r"more than \d+ values|unknown key", err)
    assert len(err) < 1000


@pytest.mark.parametrize("verb", VERBS)
def test_no_file_at_all(verb, tmp_path):
    paths = {
        tmp_path: "is a directory; a file is wanted",
        tmp_path / "none.yaml": "none.yaml: cannot be opened: No such file or directory",
        "/dev/zero": r"/dev/zero: is larger than the limit of \d+ MiB",
        "/dev/null": "empty|no header",
    }
    for path, said in paths.items():
        code, out, err = watched([verb, path])
        assert (code, out) == (2, "")
        assert re.search(said, err), err


def test_a_pipe_that_nobody_writes(tmp_path):
    os.mkfifo(tmp_path / "pipe.yaml")
    code, out, err = watched(["predict", tmp_path / "pipe.yaml"])
    assert (code, out) == (2, "")
    assert re.search(r"pipe\.yaml: no data came for \d+ s", err)


def test_a_pipe_that_is_written(tmp_path):
    pipe = tmp_path / "pipe.yaml"
    os.mkfifo(pipe)
    writer = subprocess.Popen(["sh", "-c", f"sleep 0.2; cat {EXAMPLE} > {pipe}"])
    code, out, err = watched(["predict", pipe])
    writer.wait()
    assert (code, err) == (0, "")
    assert out.startswith("llama3-8b on 128 x ")


def test_a_file_that_may_not_be_read():
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        file = pathlib.Path(folder) / "closed.yaml"
        file.write_bytes(EXAMPLE.read_bytes())
        file.chmod(0)
        options = {"preexec_fn": lambda: os.setuid(65534)} if os.geteuid() == 0 else {}
        try:
            code, out, err = watched(["predict", file], **options)
        except (PermissionError, subprocess.SubprocessError):
            pytest.skip("the program cannot be run as another user")
    assert (code, out) == (2, "")
    assert "closed.yaml: cannot be opened: Permission denied" in err


def test_standard_input_that_is_closed():
    done = subprocess.run(
        [BINARY, "predict", "-"], capture_output=True, preexec_fn=lambda: os.close(0), timeout=SECONDS
    )
    assert done.returncode == 2
    assert done.stderr


# ---- numbers at the ends of their ranges -------------------------------------------------------

INTEGER_KEYS = [
    "cluster.nodes",
    "cluster.gpus_per_node",
    "training.sequence_length",
    "training.micro_batch",
    "training.global_batch",
    "training.document_length",
    "parallelism.dp_shard",
    "parallelism.dp_replicate",
    "parallelism.tp",
    "parallelism.cp",
    "parallelism.pp",
    "parallelism.ep",
    "parallelism.etp",
    "parallelism.virtual_stages",
    "parallelism.zero_stage",
]
VALUES = ["0", "-1", "-2", "1", "2147483648", "4611686018427387904", "9223372036854775808", "1e30",
          "nan", "[1]", "{a: 1}", "''"]


@pytest.mark.parametrize("key", INTEGER_KEYS)
def test_integers_out_of_range(key, forerun):
    for value in VALUES:
        answer = forerun("predict", EXAMPLE, "--set", f"{key}={value}", timeout=SECONDS)
        assert answer.code in (0, 2), f"{key}={value}: {answer.err}"
        if answer.code == 2:
            assert re.match(r"(--set|unsupported:|\S+run\.yaml:)", answer.err), answer.err


def test_pairs_of_large_numbers(forerun):
    """Products of legal numbers: an answer or a refusal, never an overflow."""
    large = {
        "cluster": "{name: dgx-h100, gpus: 1073741824}",
        "training.micro_batch": "16777216",
        "training.sequence_length": "1073741824",
        "training.global_batch": "4294967296",
        "parallelism.dp_shard": "-1",
        "parallelism.tp": "16777216",
        "parallelism.pp": "16777216",
        "parallelism.cp": "16777216",
        "parallelism.virtual_stages": "1024",
        "model": "{layers: 100000, hidden: 65536, ffn_hidden: 65536, heads: 1024, vocab: 1073741824}",
    }
    keys = list(large)
    for i, first in enumerate(keys):
        for second in keys[i + 1 :]:
            sets = [f"--set={key}={large[key]}" for key in (first, second)]
            answer = forerun("predict", EXAMPLE, *sets, timeout=SECONDS)
            assert answer.code in (0, 2), f"{sets}: {answer.err}"


def test_random_bytes_in_a_run(tmp_path):
    """One byte of the example changed at a time, with a fixed seed."""
    draw = random.Random(1)
    plain = EXAMPLE.read_bytes()
    for turn in range(300):
        changed = bytearray(plain)
        changed[draw.randrange(len(plain))] = draw.randrange(256)
        file = tmp_path / "changed.yaml"
        file.write_bytes(changed)
        code, _, err = watched(["predict", file])
        assert code in (0, 2), f"turn {turn}: {signal.Signals(-code).name if code < 0 else err}"
