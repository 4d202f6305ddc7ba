#include "model/cost/profile.hpp"

#include <doctest/doctest.h>

#include <fstream>

#include "base/yaml.hpp"
#include "tests/support/plans.hpp"

using namespace forerun;

namespace {

/// The text of the shipped Hopper profile, with one piece replaced.
std::string hopper_with(const std::string& piece, const std::string& by) {
  const auto path = test::source_data().find(std::string(kProfileFolder) + "/hopper.yaml");
  REQUIRE(path.has_value());
  std::ifstream file(*path);
  std::string text((std::istreambuf_iterator<char>(file)), {});
  const std::size_t at = text.find(piece);
  REQUIRE(at != std::string::npos);
  return text.replace(at, piece.size(), by);
}

Profile read(const std::string& text) {
  return read_profile(parse_yaml(text, "p.yaml"), "p");
}

/// Key and message of the error that a profile is refused with.
std::string refusal(const std::string& piece, const std::string& by) {
  try {
    read(hopper_with(piece, by));
  } catch (const InputError& error) {
    CHECK(error.place().source == "p.yaml");
    CHECK(error.place().line > 0);
    return error.key() + ": " + error.problem();
  }
  return "";
}

bool begins(const std::string& text, const std::string& with) {
  return text.compare(0, with.size(), with) == 0;
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a profile is read with its units") {
  const Profile profile =
      read(hopper_with("launch: 2.8 us, split: 5 us", "launch: 3 us, split: 1 ms"));
  CHECK(profile.gemm_bf16.launch == doctest::Approx(3e-6));
  CHECK(profile.gemm_bf16.split == doctest::Approx(1e-3));
  CHECK(profile.gemm(DType::kFp8).depth != profile.gemm(DType::kBf16).depth);
  CHECK(profile.collectives.all_gather.fill_bytes == doctest::Approx(4.14 * 1048576));
  CHECK(profile.power.idle == 175);
  CHECK(profile.gpus.size() == 4);
  CHECK(!profile.sources.empty());
}

TEST_CASE("a family is slowed by each collective alike, and one that is not named by none") {
  const Profile profile = read(hopper_with("optimizer: 0.88", "optimizer: 0.88"));
  const RateTable& rates = profile.interference.rates;
  CHECK(rates.rate(KernelFamily::kGemm, CollectiveKind::kAllGather) == 0.76);
  CHECK(rates.rate(KernelFamily::kGemm, CollectiveKind::kReduceScatter) == 0.76);
  CHECK(rates.rate(KernelFamily::kEagerReduce, CollectiveKind::kAllReduce) == 0.6);
  CHECK(rates.rate(KernelFamily::kOptimizer, CollectiveKind::kAllGather) == 1);
}

TEST_CASE("a parameter that is missing is named by its path") {
  CHECK(begins(refusal("peak_fraction: 0.848, ", ""), "gemm.bf16.peak_fraction: "));
  CHECK(begins(refusal("  idle: 175 W\n", ""), "power.idle: "));
  CHECK(begins(refusal("    backward_128: {peak_fraction: 0.335, ramp: 596}\n", ""),
               "attention.flash2.backward_128: "));
  CHECK(begins(refusal("  ring_efficiency: 0.811\n", ""), "collectives.ring_efficiency: "));
}

TEST_CASE("a parameter that is misspelt is told the nearest") {
  const std::string text = refusal("depth: 128", "depht: 128");
  CHECK(begins(text, "gemm.bf16.depht: "));
  CHECK(holds(text, "depth"));
  CHECK(holds(refusal("  flash3:\n", "  flash9:\n"), "did you mean 'flash"));
}

TEST_CASE("a number without its unit, or with a wrong one, is refused") {
  CHECK(begins(refusal("launch: 2.8 us", "launch: 2.8"), "gemm.bf16.launch: "));
  CHECK(begins(refusal("launch: 2.8 us", "launch: 2.8 MiB"), "gemm.bf16.launch: "));
  CHECK(begins(refusal("fill_bytes: 4.14 MiB", "fill_bytes: 4.14 us"),
               "collectives.allgather.fill_bytes: "));
  CHECK(begins(refusal("dynamic: 674 W", "dynamic: 674 s"), "power.dynamic: "));
  CHECK(begins(refusal("eager: 0.91", "eager: much"), "memory_bound.eager: "));
}

TEST_CASE("interference of a kernel family that does not exist is refused") {
  CHECK(begins(refusal("kernels: {gemm: 0.76", "kernels: {gemms: 0.76"),
               "interference.kernels.gemms: "));
}

TEST_CASE("every GPU of a profile finds it and another is unsupported") {
  for (const char* gpu : {"h100-sxm-80gb", "h100-sxm-95gb", "h200-sxm-141gb", "h800-sxm-80gb"}) {
    CHECK(load_profile(test::source_data(), gpu).id == "hopper");
  }
  CHECK_THROWS_AS(load_profile(test::source_data(), "rtx-4090"), Unsupported);
}
