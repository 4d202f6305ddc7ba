#pragma once

// A small model for tests of blocks, and short ways to ask for its kernels. Its sizes differ from
// each other, so that bytes tell tensors apart.

#include <cstdint>
#include <string>
#include <vector>

#include "model/block_kernels.hpp"

namespace forerun::test {

inline constexpr std::int64_t kBatch = 2, kSequence = 512;

/// 8 query heads of 32 and 4 key/value heads.
inline ModelSpec small_model() {
  ModelSpec model;
  model.name = "small";
  model.layers = 4;
  model.hidden = 256;
  model.ffn_hidden = 768;
  model.heads = 8;
  model.kv_heads = 4;
  model.head_dim = 32;
  model.vocab = 1024;
  return model;
}

/// Llama 3.1 8B by its config.json (meta-llama/Llama-3.1-8B).
inline ModelSpec llama_8b() {
  ModelSpec model;
  model.name = "llama3-8b";
  model.layers = 32;
  model.hidden = 4096;
  model.ffn_hidden = 14336;
  model.heads = 32;
  model.kv_heads = 8;
  model.head_dim = 128;
  model.vocab = 128256;
  return model;
}

inline BlockRequest request(BlockKind kind, const MeshDegrees& degrees = {}) {
  BlockRequest r;
  r.kind = kind;
  r.options.batch = kBatch;
  r.options.sequence = kSequence;
  r.options.context_parallel = degrees.cp;
  r.degrees = degrees;
  return r;
}

/// Every way to run a decoder block that a plan can ask for, over these mesh degrees.
inline std::vector<BlockRequest> decoder_requests(const std::vector<MeshDegrees>& meshes) {
  std::vector<BlockRequest> out;
  for (const MeshDegrees& degrees : meshes) {
    for (const Recompute recompute : {Recompute::kNone, Recompute::kSelectiveAttention,
                                      Recompute::kSelectiveOp, Recompute::kFull}) {
      for (int bits = 0; bits < 8; ++bits) {
        BlockRequest r = request(BlockKind::kDecoder, degrees);
        r.recompute = recompute;
        r.compiled = (bits & 1) != 0;
        r.options.fp8 = (bits & 2) != 0;
        r.options.modules.quantise_once = r.compiled;
        r.options.modules.fused_norm = r.options.modules.fused_rotary = (bits & 4) != 0;
        out.push_back(r);
      }
    }
  }
  return out;
}

inline const std::vector<MeshDegrees>& all_meshes() {
  static const std::vector<MeshDegrees> meshes{{1, 1, false}, {1, 2, false}, {2, 1, false},
                                               {2, 1, true},  {4, 1, true},  {2, 2, true}};
  return meshes;
}

/// For failure messages.
inline std::string describe(const BlockRequest& r) {
  return "tp " + std::to_string(r.degrees.tp) + (r.degrees.sequence_parallel ? "+sp" : "") +
         " cp " + std::to_string(r.degrees.cp) + " " + std::string(to_text(r.recompute)) +
         (r.compiled ? " compiled" : " eager") + (r.options.fp8 ? " fp8" : " bf16") +
         (r.options.modules.fused_norm ? " fused modules" : "");
}

inline std::vector<Kernel> collectives(const std::vector<Kernel>& kernels) {
  std::vector<Kernel> out;
  for (const Kernel& k : kernels) {
    if (k.is_collective()) out.push_back(k);
  }
  return out;
}

/// How many collectives of a kind on a mesh dimension carry exactly so many bytes.
inline int count(const std::vector<Kernel>& kernels, CollectiveKind kind, MeshDim dim,
                 std::int64_t bytes) {
  int n = 0;
  for (const Kernel& k : collectives(kernels)) {
    n += k.comm.collective == kind && k.comm.dim == dim && k.comm.bytes == bytes ? 1 : 0;
  }
  return n;
}

inline double gemm_flops(const std::vector<Kernel>& kernels) {
  double flops = 0;
  for (const Kernel& k : kernels) {
    if (k.family != KernelFamily::kGemm) continue;
    flops += 2.0 * static_cast<double>(k.gemm.m * k.gemm.n) *
             static_cast<double>(k.gemm.k * k.gemm.groups) * k.repeat;
  }
  return flops;
}

inline std::int64_t bytes_of(const std::vector<Kernel>& kernels) {
  std::int64_t bytes = 0;
  for (const Kernel& k : kernels)
    bytes += k.bytes;
  return bytes;
}

}  // namespace forerun::test
