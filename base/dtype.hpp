#pragma once

// Element types of tensors and their sizes.

#include <array>
#include <cstdint>
#include <string_view>

#include "base/enum_text.hpp"

namespace forerun {

enum class DType : std::uint8_t { kFp32, kBf16, kFp16, kFp8, kInt64, kBool };

constexpr auto enum_texts(DType) {
  return std::array<std::string_view, 6>{"fp32", "bf16", "fp16", "fp8", "int64", "bool"};
}
FR_CHECK_ENUM(DType, DType::kBool);

/// Bytes of one element.
constexpr int size_of(DType type) {
  constexpr std::array<int, 6> sizes{4, 2, 2, 1, 8, 1};
  return sizes[static_cast<std::size_t>(type)];
}

}  // namespace forerun
