"""A model as read, with exact counts."""

import pytest

# Total parameters as published with the weights of Llama 3.1.
PUBLISHED = {
    "llama3-8b": 8_030_261_248,
    "llama3-70b": 70_553_706_496,
    "llama3-405b": 405_853_388_800,
}
KEYS = ["parameters_total", "parameters_without_vocabulary", "parameters_active", "layers", "hidden",
        "ffn_hidden", "heads", "kv_heads", "head_dim", "vocab", "tied_embeddings", "experts", "top_k",
        "flops_per_token"]

SMALL = """
layers: 2
hidden: 64
ffn_hidden: 96
heads: 4
kv_heads: 2
vocab: 1000
"""


def model(forerun, name):
    answer = forerun("model", name, "--json")
    assert (answer.code, answer.err) == (0, ""), answer.err
    return answer.json()


@pytest.mark.parametrize("name", PUBLISHED)
def test_catalogue(forerun, name):
    m = model(forerun, name)
    assert set(KEYS) <= set(m)
    assert m["name"] == name
    assert m["parameters_total"] == m["parameters_active"] == PUBLISHED[name]
    vocabulary = 2 * m["vocab"] * m["hidden"]
    assert m["parameters_without_vocabulary"] == PUBLISHED[name] - vocabulary
    assert str(PUBLISHED[name]) in forerun("model", name).out


def counted(layers=2, hidden=64, ffn=96, heads=4, kv=2, head_dim=16, vocab=1000, gated=True, tied=False):
    """By hand: q and o, k and v, the feed-forward matrices, two norms; embedding, norm, output."""
    layer = 2 * hidden * heads * head_dim + 2 * hidden * kv * head_dim
    layer += (3 if gated else 2) * hidden * ffn + 2 * hidden
    return layers * layer + vocab * hidden * (1 if tied else 2) + hidden


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("", counted()),
        ("tied_embeddings: true\n", counted(tied=True)),
        ("gated_mlp: false\n", counted(gated=False)),
        ("head_dim: 32\n", counted(head_dim=32)),
        ("head_dim: null\n", counted()),
        ("window: 128\n", counted()),
    ],
)
def test_file(forerun, write, more, expected):
    m = model(forerun, "./" + write("small.yaml", SMALL + more))
    assert m["parameters_total"] == expected
    # 6 a weight of a matrix (the output among them) and half of 12 x layers x heads x head_dim x
    # context, of which a window leaves less.
    attention = 6 * 2 * 4 * m["head_dim"] * (128 if "window" in more else 8192)
    weights = expected - (0 if m["tied_embeddings"] else 1000 * 64)
    assert m["flops_per_token"] == pytest.approx(6 * weights + attention, rel=1e-12)


def test_kv_heads_are_heads_where_not_given(forerun, write):
    text = SMALL.replace("kv_heads: 2\n", "")
    assert model(forerun, write("small.yaml", text))["kv_heads"] == 4


def test_experts(forerun, write):
    text = SMALL + "experts: 8\ntop_k: 2\nexpert_ffn: 48\nshared_experts: 1\n"
    m = model(forerun, write("moe.yaml", text))
    expert, router = 3 * 64 * 48, 64 * 8
    without = counted(ffn=0)
    assert m["parameters_total"] == without + 2 * (router + (8 + 1) * expert)
    assert m["parameters_active"] == without + 2 * (router + (2 + 1) * expert)


def test_the_model_of_a_run_file(forerun, example, write):
    assert model(forerun, example) == model(forerun, "llama3-8b")
    inline = "cluster: {name: dgx-h100, nodes: 1}\nmodel: {" + SMALL.strip().replace("\n", ", ") + "}\n"
    assert model(forerun, write("run.yaml", inline))["parameters_total"] == counted()
    write("small.yaml", SMALL)
    assert model(forerun, write("path.yaml", "model: ./small.yaml\n"))["parameters_total"] == counted()


def test_a_run_takes_the_same_model(forerun, example, write):
    path = write("small.yaml", SMALL)
    run = forerun("predict", example, "--json", "--set", f"model={path}").json()
    assert run["input"]["derived"]["parameters_total"] == counted()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (SMALL.replace("hidden: 64\n", "", 1), "hidden: is missing"),
        (SMALL + "hiden: 3\n", "hiden: unknown key (did you mean 'hidden'?)"),
        (SMALL.replace("heads: 4", "heads: 5"), "head_dim: is missing, and hidden 64 is not a multiple"),
        (SMALL.replace("layers: 2", "layers: many"), "layers: found 'many', an integer"),
        (SMALL.replace("vocab: 1000", "vocab: 0"), "vocab: found 0, must be at least 1"),
        (SMALL + "experts: 4\n", "top_k: is missing"),
        ("model: ./small.yaml\n", "model: unknown key"),  # of itself
    ],
)
def test_files_that_are_wrong(forerun, write, text, said):
    answer = forerun("model", write("small.yaml", text))
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("small.yaml:") or answer.err.startswith("./small.yaml:")
    assert said in answer.err


def test_unknown_name(forerun):
    answer = forerun("model", "llama3-8")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("model: unknown model 'llama3-8', nearest 'llama3-8b'; known: ")
