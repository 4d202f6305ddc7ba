#include "topology/gpu.hpp"

namespace forerun {

GpuSpec read_gpu(const Node& root, const std::string& name) {
  const MappingReader file(root, "",
                           {"description", "memory", "hbm_bandwidth", "sms", "peak", "nvlink",
                            "power", "boost_clock", "usual_nic", "usual_cluster"});
  GpuSpec gpu;
  gpu.name = name;
  gpu.description = file.required("description", to_text_value);
  gpu.memory = file.required("memory", to_sourced(to_bytes));
  gpu.hbm_bandwidth = file.required("hbm_bandwidth", to_sourced(to_bandwidth));
  gpu.sms = file.required("sms", to_sourced(integer_in({1, 4096})));
  gpu.nvlink = file.required("nvlink", to_sourced(to_bandwidth));
  gpu.power = file.required("power", to_sourced(to_watts));
  gpu.boost_clock = file.required("boost_clock", to_sourced(to_hertz));
  gpu.usual_nic = file.required("usual_nic", to_sourced(to_bandwidth));
  const MappingReader peak(file.need("peak"), "peak",
                           {"bf16", "fp16", "fp8", "fp4", "tf32", "fp32"});
  gpu.peak_bf16 = peak.required("bf16", to_sourced(to_flop_rate));
  gpu.peak_fp32 = peak.required("fp32", to_sourced(to_flop_rate));
  const auto set = [](auto& field, const auto& value) {
    if (value) field = *value;
  };
  gpu.peak_fp16 = gpu.peak_bf16;
  set(gpu.peak_fp16, peak.optional("fp16", to_sourced(to_flop_rate)));
  set(gpu.peak_fp8, peak.optional("fp8", to_sourced(to_flop_rate)));
  set(gpu.peak_fp4, peak.optional("fp4", to_sourced(to_flop_rate)));
  set(gpu.peak_tf32, peak.optional("tf32", to_sourced(to_flop_rate)));
  set(gpu.usual_cluster, file.optional("usual_cluster", to_sourced(to_text_value)));
  return gpu;
}

}  // namespace forerun
