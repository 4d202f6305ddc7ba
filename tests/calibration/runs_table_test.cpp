// What each column of a table of published runs is read as.

#include "calibration/runs_table.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/base/expect.hpp"
#include "tests/calibration/table.hpp"

using namespace forerun;
using test::Cells;
using test::contains;
using test::read_cells;

namespace {

RunFile run(const Cells& changed) {
  return read_cells(changed).run;
}

bool assumed(const RunsRow& row, const std::string& key) {
  return std::any_of(row.assumptions.begin(), row.assumptions.end(),
                     [&](const Assumption& a) { return a.key == key; });
}

std::string refused(const Cells& changed) {
  return test::input_error([&] { read_cells(changed); });
}
std::string unsupported(const Cells& changed) {
  return test::unsupported([&] { read_cells(changed); });
}

}  // namespace

TEST_CASE("the plain row is read as it stands, with nothing assumed") {
  const RunsRow row = read_cells({});
  CHECK(row.id == "a");
  CHECK(row.assumptions.empty());
  CHECK(row.run.model->layers == 32);
  CHECK(row.run.model->kv_heads == 8);
  CHECK(row.run.model->head_dim == 128);  // hidden over heads
  CHECK(row.run.model->gated_mlp);
  CHECK(row.run.cluster.gpus == 8);
  CHECK(row.run.training.sequence_length == 8192);
  CHECK(row.run.training.global_batch == 16);
  CHECK(row.run.software == "torchtitan-2024-12");
  CHECK(row.memory_kind == MemoryKind::kReserved);
  CHECK(!row.last_rank);
}

TEST_CASE("words of recompute, precision and schedule") {
  CHECK(run({{"recompute", "Selective-Op"}}).execution.recompute == Recompute::kSelectiveOp);
  CHECK(run({{"recompute", "none"}}).execution.recompute == Recompute::kNone);
  CHECK(run({{"recompute", "full"}}).execution.recompute == Recompute::kFull);
  CHECK(run({{"precision", "bf16"}}).training.precision == Precision::kBf16);
  CHECK(run({{"precision", "fp8-rowwise (all gathers too)"}}).training.precision ==
        Precision::kFp8Rowwise);
  CHECK(run({{"precision", "fp8"}}).training.precision == Precision::kFp8Tensorwise);
  CHECK(assumed(read_cells({{"precision", "fp8"}}), "training.precision"));
  CHECK(run({{"pp_schedule", "Interleaved1F1B"}}).parallelism.schedule ==
        ScheduleKind::kInterleaved1F1B);
  CHECK(run({{"pp_schedule", "1F1B"}}).parallelism.schedule == ScheduleKind::k1F1B);
  CHECK(run({{"pp_schedule", "ZB-H1"}}).parallelism.schedule == ScheduleKind::kZbH1);
}

TEST_CASE("words of attention, context parallelism, optimizer and resharding") {
  const auto attention = [](const char* word) {
    return run({{"attention_kernel", word}}).execution.attention;
  };
  CHECK(attention("SDPA flash") == AttentionKernel::kFlash2);
  CHECK(attention("FlashAttention-3") == AttentionKernel::kFlash3);
  CHECK(attention("cuDNN") == AttentionKernel::kCudnn);
  CHECK(attention("unfused") == AttentionKernel::kUnfused);
  CHECK(run({{"cp_kind", "all-gather"}}).parallelism.cp_kind == CpKind::kAllGather);
  CHECK(run({{"cp_kind", "p2p"}}).parallelism.cp_kind == CpKind::kRing);
  CHECK(run({{"cp_kind", "Ulysses"}}).parallelism.cp_kind == CpKind::kUlysses);
  CHECK(run({{"optimizer", "AdamW fused fp32 states"}}).training.optimizer ==
        OptimizerKind::kAdamW);
  CHECK(run({{"optimizer", "8-bit AdamW"}}).training.optimizer == OptimizerKind::kAdamW8bit);
  CHECK(run({{"optimizer", "Adafactor"}}).training.optimizer == OptimizerKind::kAdafactor);
  CHECK(run({{"optimizer", "AdamW, bf16 moments"}}).training.moment_dtype == DType::kBf16);
  const auto reshard = [](const char* word) {
    return run({{"reshard_after_forward", word}}).execution.reshard_after_forward;
  };
  CHECK(reshard("1") == Reshard::kAlways);
  CHECK(reshard("0") == Reshard::kNever);
  CHECK(reshard("all but last block") == Reshard::kDefault);
}

TEST_CASE("flags and degrees, which tables also write as 8.0") {
  const RunFile r = run({{"compile", "1"},
                         {"async_tp", "0"},
                         {"sequence_parallel", "1.0"},
                         {"tp", "2.0"},
                         {"dp_shard", "4"},
                         {"pp", "1"},
                         {"zero_stage", "3"},
                         {"virtual_stages", "0"}});
  CHECK(r.execution.compile == true);
  CHECK(r.execution.async_tp == false);
  CHECK(r.parallelism.sequence_parallel == true);
  CHECK(r.parallelism.tp == 2);
  CHECK(r.parallelism.dp_shard == 4);
  CHECK(r.parallelism.zero_stage == 3);
  CHECK(!r.parallelism.virtual_stages);  // 0 is none
}

TEST_CASE("blank cells leave the defaults") {
  const RunFile r = run({{"recompute", ""},
                         {"precision", ""},
                         {"compile", ""},
                         {"tp", ""},
                         {"dp_shard", ""},
                         {"attention_kernel", ""},
                         {"optimizer", ""},
                         {"pp_schedule", ""},
                         {"cp_kind", ""},
                         {"cpu_offload", ""}});
  CHECK(!r.execution.recompute);
  CHECK(!r.training.precision);
  CHECK(!r.execution.compile);
  CHECK(!r.parallelism.tp);
  CHECK(r.parallelism.dp_shard == -1);
  CHECK(!r.execution.attention);
  CHECK(!r.training.optimizer);
  CHECK(!r.parallelism.schedule);
  CHECK(!r.parallelism.cp_kind);
}

TEST_CASE("a model's size that is not stated is assumed and said") {
  const RunsRow row = read_cells({{"vocab", ""}, {"ffn_hidden", ""}, {"heads", ""}});
  CHECK(assumed(row, "model.vocab"));
  CHECK(assumed(row, "model.ffn_hidden"));
  CHECK(assumed(row, "model.heads"));
  CHECK(row.run.model->vocab == 50304);
  CHECK(row.run.model->heads == 32);          // hidden / 128
  CHECK(row.run.model->ffn_hidden == 10880);  // 8/3 of 4096 = 10922, down to whole 64s
  CHECK(run({{"kv_heads", ""}}).model->kv_heads == 32);
}

TEST_CASE("a batch that is not stated follows from the other and the replicas") {
  const RunsRow no_micro = read_cells({{"micro_batch", ""}, {"tp", "2"}, {"grad_accum", "2"}});
  CHECK(no_micro.run.training.micro_batch == 2);  // 16 sequences, 4 replicas, 2 steps
  CHECK(assumed(no_micro, "training.micro_batch"));
  const RunsRow no_global =
      read_cells({{"global_batch", ""}, {"dp_shard", "4"}, {"tp", "2"}, {"grad_accum", "3"}});
  CHECK(no_global.run.training.global_batch == 12);  // 1 x 4 x 3
  CHECK(assumed(no_global, "training.global_batch"));
  CHECK(unsupported({{"micro_batch", ""}, {"global_batch", ""}}) ==
        "unsupported: micro_batch and global_batch are not stated");
}

TEST_CASE("a word that is not known leaves the default and is said") {
  for (const auto& [column, key] : std::map<std::string, std::string>{
           {"recompute", "execution.recompute"},
           {"precision", "training.precision"},
           {"attention_kernel", "execution.attention"},
           {"optimizer", "training.optimizer"},
           {"cp_kind", "parallelism.cp_kind"},
           {"reshard_after_forward", "execution.reshard_after_forward"}}) {
    CHECK_MESSAGE(assumed(read_cells({{column, "gibberish"}}), key), column);
  }
}

TEST_CASE("a number that is none is refused with its line and column") {
  for (const char* column : {"gpus", "layers", "hidden", "ffn_hidden", "heads", "kv_heads", "vocab",
                             "seq_len", "micro_batch", "global_batch"}) {
    for (const char* bad : {"eight", "8x", "8.5", "-8", "0", "nan", "inf", "1e15"}) {
      const std::string message = refused({{column, bad}});
      CAPTURE(bad);
      CHECK_MESSAGE(contains(message, std::string("runs.csv:2: ") + column + ":"), message);
    }
  }
  for (const char* column : {"compile", "async_tp", "gated_mlp", "sequence_parallel"}) {
    CHECK(contains(refused({{column, "2"}}), "must be at most 1"));
    CHECK(contains(refused({{column, "true"}}), "a number is wanted"));
  }
  CHECK(contains(refused({{"zero_stage", "4"}}), "zero_stage: found 4, must be at most 3"));
  CHECK(contains(refused({{"tp", "0"}}), "tp: found 0, must be at least 1"));
}

TEST_CASE("what is not modelled or not stated is unsupported and named") {
  CHECK(unsupported({{"hardware", "B300-9000"}}) == "unsupported: GPU b300-9000");
  CHECK(unsupported({{"hardware", ""}}) == "unsupported: GPU not stated");
  CHECK(unsupported({{"framework", "Pathways"}}) == "unsupported: software Pathways");
  CHECK(unsupported({{"framework", ""}}) == "unsupported: software not stated");
  CHECK(unsupported({{"gpus", ""}}) == "unsupported: gpus is not stated");
  CHECK(unsupported({{"seq_len", ""}}) == "unsupported: seq_len is not stated");
  CHECK(unsupported({{"optimizer", "LoRA adapters"}}) == "unsupported: LoRA");
  CHECK(unsupported({{"cpu_offload", "optimizer"}}) == "unsupported: cpu_offload optimizer");
  CHECK(unsupported({{"recompute", "every 2nd layer"}}) ==
        "unsupported: recompute every 2nd layer");
  CHECK(unsupported({{"pp_schedule", "Chimera"}}) == "unsupported: schedule Chimera");
}

TEST_CASE("the printed memory is the row's kind, of its rank") {
  CHECK(read_cells({{"peak_mem_kind", "allocated"}}).memory_kind == MemoryKind::kAllocated);
  CHECK(read_cells({{"peak_mem_kind", "nvidia-smi"}}).memory_kind == MemoryKind::kDevice);
  CHECK(read_cells({{"peak_mem_kind", ""}}).memory_kind == MemoryKind::kReserved);
  CHECK(read_cells({{"logged_rank", "last stage"}}).last_rank);
  CHECK(!read_cells({{"logged_rank", "0"}}).last_rank);
}

TEST_CASE("a measured network is read only where it is asked for") {
  const Cells cells{{"nccl_allreduce_GBps", "200"}, {"nccl_allgather_GBps", ""}};
  CHECK(!read_cells(cells).run.measured.allreduce_busbw);
  const MeasuredSettings m = read_cells(cells, {true}).run.measured;
  CHECK(m.allreduce_busbw->value() == 200e9);
  CHECK(!m.allgather_busbw);
  CHECK(run({{"inter_link_gbps_per_gpu", "400"}}).cluster.nic_bandwidth->value() == 50e9);
}

TEST_CASE("a row with cells too many or too few is refused") {
  const CsvTable table("id,gpus\na,8\nb\nc,8,9\n", "runs.csv");
  for (const std::size_t row : {1U, 2U}) {
    const std::string message = test::input_error(
        [&] { read_runs_row(table, table.rows()[row], test::source_data(), {}); });
    CHECK(contains(message, row == 1 ? "runs.csv:3: the row has 1 cells, the header has 2"
                                     : "runs.csv:4: the row has 3 cells, the header has 2"));
  }
}

TEST_CASE("the stack nearest in date is taken, and said where it is not the month itself") {
  CHECK(!assumed(read_cells({{"framework_version", "abc (Dec 2024)"}}), "software"));
  CHECK(assumed(read_cells({{"framework_version", "2025-06"}}), "software"));
  CHECK(run({{"framework_version", "2025-06"}}).software->starts_with("torchtitan-"));
}
