#include "base/enum_text.hpp"

#include <doctest/doctest.h>

#include <array>
#include <set>
#include <string>

#include "base/dtype.hpp"

namespace forerun {
namespace {

enum class Colour : std::uint8_t { kRed, kGreen, kBlue };
constexpr auto enum_texts(Colour) {
  return std::array<std::string_view, 3>{"red", "green", "blue"};
}
FR_CHECK_ENUM(Colour, Colour::kBlue);

// Both directions work while compiling.
static_assert(to_text(Colour::kGreen) == "green");
static_assert(from_text<Colour>("blue") == Colour::kBlue);
static_assert(!from_text<Colour>("Blue") && !from_text<Colour>("") && !from_text<Colour>("re"));

}  // namespace

TEST_CASE("every text of an enum leads back to its enumerator") {
  std::set<std::string> texts;
  for (std::size_t i = 0; i < enum_texts(DType{}).size(); ++i) {
    const auto type = static_cast<DType>(i);
    CHECK(from_text<DType>(to_text(type)) == type);
    texts.insert(std::string(to_text(type)));
  }
  CHECK(texts == std::set<std::string>{"fp32", "bf16", "fp16", "fp8", "int64", "bool"});
}

TEST_CASE("a dtype has the bytes that its name says") {
  CHECK(size_of(DType::kFp32) == 4);  // 32 / 8
  CHECK(size_of(DType::kBf16) == 2);
  CHECK(size_of(DType::kFp16) == 2);
  CHECK(size_of(DType::kFp8) == 1);
  CHECK(size_of(DType::kInt64) == 8);
  CHECK(size_of(DType::kBool) == 1);
}

}  // namespace forerun
