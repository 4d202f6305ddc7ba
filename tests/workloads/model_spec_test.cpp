#include "workloads/model_spec.hpp"

#include <doctest/doctest.h>

#include <string>

#include "base/yaml.hpp"
#include "tests/base/expect.hpp"
#include "tests/base/temporary_folder.hpp"
#include "tests/support/plans.hpp"

namespace forerun {
namespace {

using test::contains;
using test::input_error;

ModelSpec known(const std::string& name) {
  return load_model(test::source_data(), name, {"run.yaml", 2, 8}, "model");
}
ModelSpec inline_model(const std::string& yaml) {
  return read_model(parse_yaml(yaml, "m.yaml"), "model", "inline");
}
std::string refusal(const std::string& yaml) {
  return input_error([&] { inline_model(yaml); });
}
std::int64_t total(const std::string& yaml) {
  return count_parameters(inline_model(yaml)).total;
}

}  // namespace

TEST_CASE("the Llamas have exactly the parameters of their model cards") {
  CHECK(count_parameters(known("llama3-8b")).total == 8'030'261'248);
  CHECK(count_parameters(known("llama3-70b")).total == 70'553'706'496);
  CHECK(count_parameters(known("llama3-405b")).total == 405'853'388'800);
}

TEST_CASE("the parts of Llama-3.1-8B are what its dimensions give") {
  const ParameterCount c = count_parameters(known("llama3-8b"));
  CHECK(c.embedding == 128256 * 4096);
  CHECK(c.head == 128256 * 4096);
  CHECK(c.final_norm == 4096);
  // Queries and output 4096 x 4096, keys and values 4096 x 1024, three of 4096 x 14336, two norms.
  CHECK(c.layer == 2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336 + 2 * 4096);
  CHECK(c.total == c.embedding + 32 * c.layer + c.final_norm + c.head);
  CHECK(c.active == c.total);
}

TEST_CASE("models of other shapes have the parameters that their weights hold") {
  // Llama-3.2-1B, tied embeddings: 1,235,814,400 in meta-llama/Llama-3.2-1B.
  CHECK(total("{layers: 16, hidden: 2048, ffn_hidden: 8192, heads: 32, kv_heads: 8, vocab: 128256, "
              "tied_embeddings: true}") == 1'235'814'400);
  // Llama-2-7B, as many key/value heads as heads: 6,738,415,616 in meta-llama/Llama-2-7b-hf.
  CHECK(total("{layers: 32, hidden: 4096, ffn_hidden: 11008, heads: 32, vocab: 32000}") ==
        6'738'415'616);
  // Mistral-Nemo, head_dim 128 where hidden / heads is 160: 12,247,782,400.
  CHECK(
      total("{layers: 40, hidden: 5120, ffn_hidden: 14336, heads: 32, kv_heads: 8, head_dim: 128, "
            "vocab: 131072}") == 12'247'782'400);
}

TEST_CASE("a mixture of experts stores all and uses some") {
  // Mixtral-8x7B: 46,702,792,704 in mistralai/Mixtral-8x7B-v0.1; 2 of 8 experts a token.
  const ModelSpec m = inline_model(
      "{layers: 32, hidden: 4096, ffn_hidden: 14336, heads: 32, kv_heads: 8, vocab: 32000, "
      "experts: "
      "8, top_k: 2}");
  CHECK(m.moe());
  CHECK(m.expert_ffn == 14336);
  CHECK(count_parameters(m).total == 46'702'792'704);
  // Less 6 of 8 experts of 3 x 4096 x 14336 in each of 32 layers.
  CHECK(count_parameters(m).active == 46'702'792'704 - 32LL * 6 * 3 * 4096 * 14336);
}

TEST_CASE("the mixtures of experts of the catalogue have the parameters of their weights") {
  CHECK(count_parameters(known("mixtral-8x7b")).total == 46'702'792'704);
  // Qwen3 normalises queries and keys: 2 x 128 weights a layer.
  CHECK(count_parameters(known("qwen3-30b-a3b")).total == 30'532'122'624);
  CHECK(count_parameters(known("qwen3-235b-a22b")).total == 235'093'634'560);
}

TEST_CASE("dense layers of a mixture of experts lead or alternate") {
  const std::string dims =
      "layers: 10, hidden: 64, ffn_hidden: 512, heads: 4, vocab: 1000, experts: 8, top_k: 2, "
      "expert_ffn: 32, shared_experts: 1";
  const std::int64_t outside = 2 * 1000 * 64 + 64, attention = 4 * 64 * 64 + 2 * 64;
  const std::int64_t dense = attention + 3 * 64 * 512, expert = 3 * 64 * 32;
  const std::int64_t moe = attention + 64 * 8 + 9 * expert, active = moe - 6 * expert;
  const ModelSpec leading = inline_model("{" + dims + ", first_k_dense: 3}");
  CHECK(leading.moe_layers() == 7);
  CHECK(count_parameters(leading).total == outside + 3 * dense + 7 * moe);
  CHECK(count_parameters(leading).active == outside + 3 * dense + 7 * active);
  const ModelSpec alternating = inline_model("{" + dims + ", moe_every: 2, first_k_dense: 1}");
  CHECK(alternating.moe_layers() == 5);
  CHECK_FALSE(alternating.moe_layer(0));
  CHECK(alternating.moe_layer(1));
  CHECK(count_parameters(alternating).total == outside + 5 * dense + 5 * moe);
}

TEST_CASE("the FLOPs of a token count the experts that it uses") {
  // 6 a weight that a token meets, without the embedding's look-up; attention as in a dense model.
  const ModelSpec m = known("mixtral-8x7b");
  const double active = 46'702'792'704.0 - 32.0 * 6 * 3 * 4096 * 14336 - 32000.0 * 4096;
  CHECK(flops_per_token(m, 4096, false) == 6 * active + 12.0 * 32 * 4096 * 4096);
}

TEST_CASE("a plain MLP has two matrices and a gated one three") {
  const std::string dims = "layers: 2, hidden: 64, ffn_hidden: 256, heads: 4, vocab: 1000";
  const std::int64_t gated = total("{" + dims + "}");
  const std::int64_t plain = total("{" + dims + ", gated_mlp: false}");
  CHECK(gated - plain == 2 * 64 * 256);
  // 2 vocab x hidden + 2 layers x (4 x 64 x 64 + 2 x 64 x 256 + 2 norms) + the last norm.
  CHECK(plain == 2 * 1000 * 64 + 2 * (4 * 64 * 64 + 2 * 64 * 256 + 2 * 64) + 64);
}

TEST_CASE("the FLOPs of a token are torchtitan's formula, and half the attention when causal") {
  // 6 (N - embedding) + 12 x layers x heads x head_dim x sequence for Llama-3.1-8B at 8192:
  // 6 x 7,504,924,672 + 12 x 32 x 4096 x 8192.
  const ModelSpec m = known("llama3-8b");
  CHECK(flops_per_token(m, 8192, false) == 45'029'548'032.0 + 12'884'901'888.0);
  CHECK(flops_per_token(m, 8192, true) == 45'029'548'032.0 + 6'442'450'944.0);
}

TEST_CASE("a sliding window bounds the attention of a token") {
  ModelSpec m = known("llama3-8b");
  m.window = 4096;
  CHECK(flops_per_token(m, 8192, false) == 45'029'548'032.0 + 12.0 * 32 * 4096 * 4096);
  CHECK(flops_per_token(m, 2048, false) == 45'029'548'032.0 + 12.0 * 32 * 4096 * 2048);
}

TEST_CASE("what an inline model leaves out follows from the rest or is asked for") {
  const ModelSpec m = inline_model("{layers: 2, hidden: 64, ffn_hidden: 256, heads: 4, vocab: 9}");
  CHECK(m.kv_heads == 4);
  CHECK(m.head_dim == 16);
  CHECK(m.gated_mlp);
  CHECK_FALSE(m.tied_embeddings);
  CHECK_FALSE(m.moe());
  CHECK(refusal("{layers: 2, hidden: 64, heads: 4, vocab: 9}") ==
        "m.yaml:1:1: model.ffn_hidden: is missing");
  CHECK(contains(refusal("{layers: 2, hidden: 65, ffn_hidden: 256, heads: 4, vocab: 9}"),
                 "model.head_dim: is missing, and hidden 65 is not a multiple of heads 4"));
  CHECK(contains(refusal("{layers: 2, hidden: 64, ffn_hidden: 8, heads: 4, vocab: 9, experts: 8}"),
                 "model.top_k: is missing"));
}

TEST_CASE("a model that cannot be counted is refused") {
  CHECK(contains(refusal("{layers: 0, hidden: 64, ffn_hidden: 256, heads: 4, vocab: 9}"),
                 "model.layers: found 0, must be at least 1"));
  CHECK(contains(refusal("{layers: 100000, hidden: 1048576, ffn_hidden: 1048576, heads: 1024, "
                         "vocab: 128256}"),
                 "parameters; at most"));
  CHECK(
      contains(refusal("{layers: 1, hidden: 1073741824, ffn_hidden: 1073741824, heads: 1073741824, "
                       "head_dim: 1073741824, vocab: 1073741824}"),
               "parameters; at most"));
  ModelSpec m = known("llama3-8b");
  CHECK_NOTHROW(check_model(m, {}, "model"));
  m.kv_heads = 0;
  CHECK(input_error([&] {
          check_model(m, {"t.csv", 3, 0}, "model");
        }) == "t.csv:3: model.kv_heads: found 0, must be at least 1");
}

TEST_CASE("a model is a name of the catalogue or the path of a file") {
  const test::TemporaryFolder folder;
  const std::string path = folder.write(
      "small.yaml", "layers: 2\nhidden: 64\nffn_hidden: 256\nheads: 4\nvocab: 9\nsource: mine\n");
  CHECK(known(path).layers == 2);
  CHECK(known(path).source == "mine");
  CHECK(contains(input_error([] { known("llama3-8"); }),
                 "run.yaml:2:8: model: unknown model 'llama3-8', nearest 'llama3-8b'"));
  CHECK(contains(input_error([] { known("./none.yaml"); }), "./none.yaml: cannot be opened"));
  for (const std::string& name : test::source_data().names(kModelFolder)) {
    CHECK_MESSAGE(!known(name).source.empty(), name);
  }
}

}  // namespace forerun
