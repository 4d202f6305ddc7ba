#pragma once

// Time of a matrix product from measured efficiency.
//
//   w    waves of 64 x 64 output tiles over the SMs: ceil(m/64) ceil(n/64) / S, of all products of
//        a grouped one together
//   one  time of a full wave: 2 x 64 x 64 x S x (k + k0) / R; k0 is prologue and epilogue as depth
//   tc   min(one x (ceil(w) + max(w, 1)) / 2, split + one x w) x (1 + heat x ln(1 + 2mnk / 1e12))
//        the first branch is half-smoothed wave quantisation, the second split-K for few tiles
//   tm   operands read once and the result written, at a fraction of HBM bandwidth
//   t    launch + (tc^3 + tm^3)^(1/3)
//
// Source of form and values: least squares on the log of 3,091 to 6,210 measured times a GPU and
// dtype (NVIDIA aiconfigurator tables, Apache-2.0); residuals stand in the profile. Rows in fp8 of
// those tables hold the cast of the activation, which was fitted apart and is left out here.

#include "base/quantity.hpp"
#include "model/kernel.hpp"

namespace forerun {

struct GemmCosts {
  double peak_fraction = 0;      ///< R over the dense peak of the dtype
  double depth = 0;              ///< k0, elements of k
  double launch = 0;             ///< s
  double split = 0;              ///< s, what splitting k costs
  double hbm_fraction = 0;       ///< of HBM bandwidth when bound by it
  double heat = 0;               ///< slow-down a factor e of work above 1e12 FLOP
  double wgrad = 1;              ///< time of the weight-gradient layout over the forward one
  double full_accumulation = 1;  ///< fp8: time with fp32 accumulation over fast accumulation
};

/// Whether fp8 products accumulate in the tensor core's own width (fast) or in full fp32.
enum class Accumulation : std::uint8_t { kFast, kFull };

/// What the device gives a matrix product.
struct GemmDevice {
  FlopsPerSecond peak;  ///< dense, of the dtype, at the clock that is sustained
  BytesPerSecond hbm;
  double sms = 1;
};

Seconds gemm_time(const GemmShape& shape, const GemmCosts& costs, const GemmDevice& device,
                  Accumulation accumulation = Accumulation::kFast);

}  // namespace forerun
