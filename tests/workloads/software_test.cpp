#include "workloads/software.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "tests/base/expect.hpp"
#include "tests/base/temporary_folder.hpp"
#include "tests/support/plans.hpp"

namespace forerun {
namespace {

using test::contains;
using test::input_error;

constexpr const char* kTorchtitan = "torchtitan-2024-12";

SoftwareStack stack(const std::string& name, const DataPath& data = test::source_data()) {
  return load_software(data, name, {"run.yaml", 4, 11}, "software");
}

std::string text_of_stack() {
  const auto path =
      test::source_data().find(std::string(kSoftwareFolder) + "/" + kTorchtitan + ".yaml");
  std::ifstream file(path.value());
  return {std::istreambuf_iterator<char>(file), {}};
}

/// What is wrong with the stack where `before` is written as `after`.
std::string refusal(const std::string& before, const std::string& after) {
  std::string text = text_of_stack();
  const std::size_t at = text.find(before);
  REQUIRE(at != std::string::npos);
  text.replace(at, before.size(), after);
  const test::TemporaryFolder own;
  own.write(std::string(kSoftwareFolder) + "/mine.yaml", text);
  return input_error([&] { stack("mine", DataPath({own.path()})); });
}

}  // namespace

TEST_CASE("torchtitan of December 2024 runs as its code does") {
  const SoftwareStack s = stack(kTorchtitan);
  CHECK(s.date == "2024-12");
  CHECK_FALSE(s.sources.empty());
  CHECK(s.stage_split == StageSplit::kTorchtitan);
  CHECK(s.recompute == Recompute::kSelectiveOp);  // train_configs: selective, option op
  CHECK(s.loss_with_tp == LossKind::kParallel);   // enable_loss_parallel is on
  CHECK(s.attention == AttentionKernel::kFlash2);
  CHECK_FALSE(s.compile.has_value());
  CHECK_FALSE(s.modules.fused_norm);  // norm_type rmsnorm
  CHECK(s.compile_needed_for_async_tp);
  CHECK(s.etp_default == 1);
  CHECK(s.host.eager_forward == doctest::Approx(13e-6));
  CHECK(s.memory.workspace_bytes == 64 * kMiB);
}

TEST_CASE("every number of every stack has a source and at most six are fitted") {
  for (const std::string& name : test::source_data().names(kSoftwareFolder)) {
    const SoftwareStack s = stack(name);
    CHECK(s.name == name);
    CHECK(s.parameters.size() == 10);  // seven host times, three of memory
    for (const Parameter& p : s.parameters)
      CHECK_MESSAGE(!p.source.empty(), p.name);
    const auto fitted = std::count_if(s.parameters.begin(), s.parameters.end(), [](const auto& p) {
      return p.kind == ParameterKind::kFitted;
    });
    CHECK_MESSAGE(fitted <= 6, name);
  }
}

TEST_CASE("a stack is read strictly") {
  CHECK(refusal("description", "description") == "no error");
  CHECK(contains(refusal("blocking_sends", "blocking_send"), "(did you mean 'blocking_sends'?)"));
  CHECK(contains(refusal("stage_split: torchtitan", "stage_split: any"),
                 "rules.stage_split: found 'any', allowed: even, torchtitan, megatron"));
  CHECK(contains(refusal("value: 13 us", "value: 13"),
                 "host.eager_forward.value: found '13', a unit"));
  CHECK(contains(refusal("etp_default: 1", "etp_default: 4294967296"), "must be at most"));
  CHECK(
      contains(refusal("etp_default: 1", "etp_default: some"), "rules.etp_default: found 'some'"));
  CHECK(contains(refusal("  schedule: 1f1b\n", ""), "defaults.schedule: is missing"));
}

TEST_CASE("an unknown stack is refused with the nearest") {
  CHECK(contains(input_error([] { stack("torchtitan-2024-11"); }),
                 "run.yaml:4:11: software: unknown software 'torchtitan-2024-11', nearest "
                 "'torchtitan-2024-12'"));
}

}  // namespace forerun
