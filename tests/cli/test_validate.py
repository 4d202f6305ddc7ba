"""A table of published runs: columns, statuses, and what is never read."""

import csv
import io
import random
import re

import pytest

NUMBERS = ["tokens_s_gpu", "step_time_s", "tflops_gpu", "mfu", "peak_mem_gib", "allocated_gib"]
COLUMNS = ["id", "status", *[name + end for name in NUMBERS for end in ("", "_low", "_high")], "fits",
           "p_fits", "assumptions", "top_assumption"]
# Never read for a forecast.
BLANK = ["tokens_s_gpu", "tflops_gpu", "mfu", "step_time_s", "peak_mem_gib", "allocated_gib",
         "static_allocated_bytes", "peak_allocated_bytes", "status", "state", "suspect", "near_limit",
         "source", "provenance", "notes"]


def read(text):
    return list(csv.DictReader(io.StringIO(text)))


def written(rows, columns=None):
    out = io.StringIO()
    table = csv.DictWriter(out, columns or list(rows[0]), lineterminator="\n", extrasaction="ignore")
    table.writeheader()
    table.writerows(rows)
    return out.getvalue()


@pytest.fixture
def published(runs):
    return read(runs.read_text())


@pytest.fixture
def predicted(forerun, write):
    """predicted(rows) is the table that validate makes of them, as text."""

    def predict(rows, *arguments, columns=None):
        answer = forerun("validate", write("runs.csv", written(rows, columns)), "-o", "-", *arguments)
        assert answer.code == 0, answer.err
        return answer.out

    return predict


def by_id(text):
    """Lines of the answer by id, without the header."""
    return {line.split(",", 1)[0]: line for line in text.splitlines()[1:]}


def test_columns(predicted, published):
    text = predicted(published)
    assert text.splitlines()[0].split(",")[: len(COLUMNS)] == COLUMNS
    rows = read(text)
    assert [row["id"] for row in rows] == [row["id"] for row in published]
    for row in rows:
        assert row["status"] == "ok"
        for name in NUMBERS:
            low, value, high = (float(row[name + end]) for end in ("_low", "", "_high"))
            assert 0 < low <= value <= high
        assert row["fits"] in ("true", "false")
        assert 0 <= float(row["p_fits"]) <= 1
        keys = [part.split("=")[0] for part in row["assumptions"].split("; ") if part]
        assert row["top_assumption"] == "" or row["top_assumption"].split("=")[0] in keys


def test_numbers_are_those_of_predict(forerun, example, predicted, published):
    """The example is the row of 128 GPUs, compiled."""
    row = next(r for r in read(predicted(published)) if r["id"] == "tt-202412-8b-128g-fsdp-compile")
    f = forerun("predict", example, "--json").json()
    for name in NUMBERS[:-1]:
        assert float(row[name]) == pytest.approx(f[name], rel=1e-9)
        assert float(row[f"{name}_high"]) == pytest.approx(f[f"{name}_high"], rel=1e-9)
    assert float(row["allocated_gib"]) == pytest.approx(f["resident_gib"], rel=1e-9)
    assert row["fits"] == str(f["fits"]).lower()


def test_out_is_a_file_and_the_score_is_printed(forerun, runs, tmp_path):
    answer = forerun("validate", runs, "-o", "p.csv")
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.startswith("88 rows\n")
    text = (tmp_path / "p.csv").read_text()
    assert text == forerun("validate", runs, "-o", "-").out == forerun("validate", runs, "--out=-").out
    score = forerun("validate", runs, "--json").json()
    assert score["rows"] == 88
    assert score["statuses"] == {"ok": 88}
    assert set(score["speed"]) >= {"runs", "median", "mean", "p90", "bias", "covered"}


def test_pairs(forerun, runs):
    pairs = runs.with_name("torchtitan_pairs.csv")
    summary = forerun("validate", runs, "--pairs", pairs, "--json").json()["pairs"]
    assert sum(summary[key] for key in ("right", "wrong", "ties_close", "ties_apart", "unanswered")) == len(
        read(pairs.read_text())
    )
    assert forerun("validate", runs, "--pairs", runs).code == 2


def test_residuals_are_what_the_intervals_are_made_of(forerun, runs, tmp_path):
    forerun("validate", runs, "--residuals", "calibration.yaml")
    text = (tmp_path / "calibration.yaml").read_text()
    assert re.search(r"^all:\n  speed: \{low: 0\.\d+, median: \d\.\d+, high: \d\.\d+, runs: 88\}", text, re.M)
    own = tmp_path / "own" / "calibration"
    own.mkdir(parents=True)
    (own / "residuals.yaml").write_text(
        "all:\n  speed: {low: 0.5, median: 1, high: 2, runs: 9}\n  memory: {low: 1, median: 1, high: 1, runs: 9}\n"
    )
    row = read(forerun("validate", runs, "-o", "-", "--data", "own").out)[0]
    assert float(row["tokens_s_gpu_low"]) == pytest.approx(float(row["tokens_s_gpu"]) / 2)
    assert float(row["tokens_s_gpu_high"]) == pytest.approx(float(row["tokens_s_gpu"]) * 2)
    assert row["peak_mem_gib_low"] == row["peak_mem_gib"] == row["peak_mem_gib_high"]


# ---- what is never read ------------------------------------------------------------------------


def disturbed(rows):
    """Rows of every kind of answer beside the published ones."""
    more = [
        dict(rows[0], id="broken", gpus="eight"),
        dict(rows[1], id="impossible", kv_heads="5"),
        dict(rows[2], id="unsupported", framework="another"),
        dict(rows[3], id="a,comma and a \"quote\"", tp="16"),
    ]
    return rows + more


def test_order_and_measured_columns_change_nothing(predicted, published):
    rows = disturbed(published)
    before = by_id(predicted(rows))
    draw = random.Random(7)
    shuffled = [{k: "" if k in BLANK else v for k, v in row.items()} for row in rows]
    draw.shuffle(shuffled)
    assert by_id(predicted(shuffled)) == before
    scrambled = [dict(row, **{k: draw.choice(["7", "x", "-1", "1e9"]) for k in BLANK}) for row in rows]
    assert by_id(predicted(scrambled)) == before
    columns = [column for column in rows[0] if column not in BLANK]
    draw.shuffle(columns)
    assert by_id(predicted(rows, columns=columns)) == before


def test_the_id_changes_nothing_but_itself(predicted, published):
    before = [line.split(",", 1)[1] for line in predicted(published).splitlines()]
    blank = [dict(row, id="") for row in published]
    assert [line.split(",", 1)[1] for line in predicted(blank).splitlines()] == before


def test_what_is_printed_of_memory(predicted, published):
    row = next(r for r in published if r["pp"] == "8")
    kinds = ["", "reserved", "allocated", "active", "nvidia-smi", "theoretical"]
    rows = [dict(row, id=f"{kind}/{rank}", peak_mem_kind=kind, logged_rank=rank)
            for kind in kinds for rank in ("", "last", "last (assumed)")]
    answers = {r["id"]: r for r in read(predicted(rows, columns=[*row, "logged_rank"]))}
    gib = {key: float(answer["peak_mem_gib"]) for key, answer in answers.items()}
    assert gib["/"] == gib["reserved/"]
    assert gib["allocated/"] == gib["theoretical/"] < gib["reserved/"] < gib["nvidia-smi/"]
    assert gib["reserved/last"] == gib["reserved/last (assumed)"] <= gib["reserved/"]
    for answer in answers.values():  # nothing else depends on it
        rest = {k: v for k, v in answer.items() if k != "id" and not k.startswith("peak_mem_gib")}
        assert rest == {k: v for k, v in answers["/"].items() if k in rest}


def test_the_measured_network_is_read_when_asked_for(predicted, published):
    rows = [dict(row, nccl_allreduce_GBps="3", nccl_allgather_GBps="3", nccl_reducescatter_GBps="3")
            for row in published]
    assert predicted(rows) == predicted(published)
    plain, measured = read(predicted(rows)), read(predicted(rows, "--use-measured-network"))
    slower = 0
    for row, a, b in zip(rows, plain, measured):
        if row["gpus"] == "8":  # what was measured holds between nodes
            assert a == b
        slower += float(b["step_time_s"]) > float(a["step_time_s"])
        for column in ("fits", "p_fits", "peak_mem_gib", "peak_mem_gib_low", "allocated_gib", "assumptions"):
            assert a[column] == b[column]
    assert slower > 30
    assert predicted(published, "--use-measured-network") == predicted(published)


def test_the_engines_agree(predicted, published):
    rows = [row for row in published if row["pp"] in ("8", "16")][:4] + published[:8]
    for a, b in zip(read(predicted(rows)), read(predicted(rows, "--engine", "des"))):
        assert float(b["step_time_s"]) == pytest.approx(float(a["step_time_s"]), rel=1e-8)
        assert b["peak_mem_gib"] == a["peak_mem_gib"]


# ---- rows that cannot be read ------------------------------------------------------------------


def test_every_row_gets_a_line(forerun, predicted, published):
    rows = disturbed(published)
    lines = read(predicted(rows))
    assert [line["id"] for line in lines] == [row["id"] for row in rows]
    status = {line["id"]: line["status"] for line in lines}
    assert status["broken"] == "invalid: gpus: found 'eight', a number is wanted"
    assert status["impossible"].startswith("invalid: model.kv_heads: found 5; heads 32 ")
    assert status["unsupported"] == "unsupported: software another"
    for line in lines:
        if line["status"] != "ok":
            assert set(line[column] for column in COLUMNS[2:]) == {""}


def test_where_invalid_rows_stand_is_said(forerun, write, published):
    answer = forerun("validate", write("runs.csv", written(disturbed(published))))
    assert answer.code == 0
    assert f"runs.csv:{len(published) + 2}: row 'broken': invalid: gpus: found 'eight'" in answer.err
    assert forerun("validate", "runs.csv", "-q").err == ""


WORDS = ["", "x", "0", "-1", "1.5", "1e400", "nan", "inf", "999999999999999999", "8.0", " 8", "é", "'", "1,2"]


def test_words_in_every_column(forerun, write, published):
    """Each column of a row with each of these words: a line with a status, whatever it is."""
    row = next(r for r in published if r["pp"] == "8")
    rows = [dict(row, id=f"{column}-{i}", **({column: word} if column != "id" else {}))
            for column in row for i, word in enumerate(WORDS)]
    answer = forerun("validate", write("runs.csv", written(rows)), "-o", "-", "-q", timeout=60)
    assert (answer.code, answer.err) == (0, "")
    lines = read(answer.out)
    assert len(lines) == len(rows)
    for line in lines:
        assert line["status"] == "ok" or line["status"].startswith(("invalid: ", "unsupported: "))
        if line["status"] == "ok":
            assert 0 < float(line["tokens_s_gpu"]) < float("inf")


def test_cut_and_shuffled_tables(forerun, write, runs):
    """A few hundred bytes cut out anywhere, and cells thrown about: answered or refused."""
    text = runs.read_text()
    draw = random.Random(3)
    for _ in range(20):
        begin = draw.randrange(len(text))
        answer = forerun("validate", write("cut.csv", text[:begin] + text[begin + draw.randrange(300):]),
                         "-o", "-", "-q")
        assert answer.code in (0, 2), answer.err
    rows = read(text)
    cells = [value for row in rows for value in row.values()]
    draw.shuffle(cells)
    for row in rows:
        for column in row:
            row[column] = cells.pop()
    answer = forerun("validate", write("thrown.csv", written(rows)), "-o", "-", "-q")
    assert (answer.code, len(read(answer.out))) == (0, len(rows))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "runs.csv: the table has no header line"),
        ("id,gpus\n", "runs.csv:1: seq_len: the table of runs has no such column"),
        ("id,gpus,seq_len,gpus\n", "runs.csv:1: gpus: the column stands twice"),
        ('id,gpus,seq_len\n"a,1,2\n', "runs.csv:2: not valid CSV"),
    ],
)
def test_tables_that_cannot_be_read(forerun, write, text, said):
    answer = forerun("validate", write("runs.csv", text))
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err


def test_a_table_without_rows(forerun, write):
    answer = forerun("validate", write("runs.csv", "id,gpus,seq_len\n"), "-o", "-")
    assert (answer.code, answer.out.splitlines()) == (0, [",".join(COLUMNS)])
    assert forerun("validate", "runs.csv").out.startswith("0 rows\n")


def test_line_ends_and_byte_order_mark(forerun, write, runs):
    plain = forerun("validate", runs, "-o", "-").out
    crlf = b"\xef\xbb\xbf" + runs.read_bytes().replace(b"\n", b"\r\n")
    assert forerun("validate", write("runs.csv", crlf), "-o", "-").out == plain


def test_only_the_rows_asked_for(forerun, runs, published):
    answer = forerun("validate", runs, "-o", "-", "--only", "ttv1-8b")
    ids = [row["id"] for row in read(answer.out)]
    assert ids == [row["id"] for row in published if "ttv1-8b" in row["id"]] != []
    answer = forerun("validate", runs, "--only", "tt[")
    assert answer.code == 2 and "a regular expression is wanted" in answer.err


def test_the_largest_errors_are_listed_first(forerun, runs, published):
    text = forerun("validate", runs, "--worst", "3").out
    speed, memory = text.split("largest errors")[1:]
    measured = {row["id"]: row for row in published}
    for part, quantity in ((speed, "tokens_s_gpu"), (memory, "peak_mem_gib")):
        lines = [line.split() for line in part.splitlines()[1:4]]
        errors = [float(line[4].rstrip("%")) for line in lines]
        assert [abs(e) for e in errors] == sorted((abs(e) for e in errors), reverse=True)
        for (run, column, before, after, _), error in zip(lines, errors, strict=True):
            assert column == quantity
            assert float(before) == pytest.approx(float(measured[run][quantity]), rel=1e-3)
            assert float(after) / float(before) - 1 == pytest.approx(error / 100, abs=2e-3)
