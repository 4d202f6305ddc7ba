#pragma once

// Files of other programs, told by their content, that are not read yet.

#include "base/text_file.hpp"

namespace forerun {

/// Throws Unsupported naming the format where a file is plainly one of another program (a
/// torchtitan TOML, a launch script, a DeepSpeed or Hugging Face configuration).
void refuse_foreign(const TextFile& file);

}  // namespace forerun
