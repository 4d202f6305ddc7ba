// `predict --json`: its keys are a contract, and its numbers agree with each other.

#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "report/report.hpp"
#include "tests/report/explained.hpp"
#include "workloads/resolve.hpp"

using namespace forerun;
using Json = nlohmann::json;

namespace {

const std::vector<std::string> kIntervals{"step_time_s", "tokens_s_gpu", "tflops_gpu", "mfu",
                                          "peak_mem_gib"};
const std::vector<std::string> kMemory{"reserved_gib", "allocated_gib", "active_gib", "device_gib",
                                       "resident_gib"};
const std::vector<std::string> kOthers{"schema_version", "status",     "fits",    "p_fits",
                                       "breakdown_s",    "memory_gib", "stages",  "input",
                                       "assumptions",    "warnings",   "profile", "software"};
const std::set<std::string> kTerms{"gemm",       "attention",    "pointwise",  "cast",
                                   "optimizer",  "exposed_tp",   "exposed_cp", "exposed_ep",
                                   "exposed_pp", "exposed_dp",   "bubble",     "host",
                                   "recompute",  "interference", "other"};

Json document(const std::string& yaml, EngineKind engine = EngineKind::kAnalytic) {
  return Json::parse(forecast_json(test::explained(test::job_of(yaml), engine)));
}

/// No null anywhere: a number that is not finite would become one.
bool complete(const Json& json) {
  if (json.is_null()) return false;
  if (!json.is_structured()) return true;
  for (const Json& item : json) {
    if (!complete(item)) return false;
  }
  return true;
}

double sum(const Json& mapping) {
  double all = 0;
  for (const Json& value : mapping)
    all += value.get<double>();
  return all;
}

}  // namespace

TEST_CASE("every key of the contract is there and every number finite") {
  for (const std::string& yaml : test::runs()) {
    CAPTURE(yaml);
    const Json d = document(yaml);
    for (const std::string& key : kIntervals) {
      for (const char* end : {"", "_low", "_high"})
        CHECK_MESSAGE(d.contains(key + end), key);
    }
    for (const std::string& key : kMemory)
      CHECK_MESSAGE(d.contains(key), key);
    for (const std::string& key : kOthers)
      CHECK_MESSAGE(d.contains(key), key);
    std::set<std::string> terms;
    for (const auto& [term, seconds] : d["breakdown_s"].items())
      terms.insert(term);
    CHECK(terms == kTerms);
    for (const char* key : {"gpus", "dp", "microbatches", "layers_per_stage"})
      CHECK_MESSAGE(d["input"]["derived"].contains(key), key);
    for (const char* key : {"profile", "software"})
      CHECK(d[key]["date"].get<std::string>().starts_with("20"));
    CHECK(complete(d));
    CHECK(d["status"] == "ok");
    CHECK(d["schema_version"] == kSchemaVersion);
  }
}

TEST_CASE("terms sum to the step, intervals rise, memories lie within each other") {
  for (const std::string& yaml : test::runs()) {
    CAPTURE(yaml);
    const Json d = document(yaml);
    CHECK(sum(d["breakdown_s"]) == doctest::Approx(d["step_time_s"].get<double>()).epsilon(1e-9));
    CHECK(sum(d["memory_gib"]) == doctest::Approx(d["allocated_gib"].get<double>()).epsilon(1e-9));
    for (const std::string& key : kIntervals) {
      CHECK(d[key + "_low"] <= d[key]);
      CHECK(d[key] <= d[key + "_high"]);
      CHECK(d[key + "_low"] < d[key + "_high"]);
      CHECK(d[key + "_low"] > 0);
    }
    CHECK(d["peak_mem_gib"] == d["reserved_gib"]);
    CHECK(d["resident_gib"] < d["allocated_gib"]);
    CHECK(d["allocated_gib"] <= d["reserved_gib"]);
    CHECK(d["reserved_gib"] < d["device_gib"]);
    CHECK(d["fits"] == (d["device_gib"] <= d["fit"]["gpu_memory_gib"]));
    CHECK(d["p_fits"] >= 0);
    CHECK(d["p_fits"] <= 1);
  }
}

TEST_CASE("speed, FLOPs and MFU are one step time in other units") {
  for (const std::string& yaml : test::runs()) {
    CAPTURE(yaml);
    const Job job = test::job_of(yaml);
    const Json d = Json::parse(forecast_json(test::explained(job)));
    const double tokens = static_cast<double>(job.plan.global_batch * job.plan.sequence_length);
    CHECK(d["tokens_s_gpu"].get<double>() ==
          doctest::Approx(tokens / d["input"]["derived"]["gpus"].get<double>() /
                          d["step_time_s"].get<double>()));
    // The dense peaks of an H100 SXM: 989.4 TFLOP/s in bf16, 1978.9 in fp8 (its data sheet).
    const bool fp8 = job.plan.precision == Precision::kFp8Tensorwise;
    CHECK(d["tflops_gpu"].get<double>() / d["mfu"].get<double>() ==
          doctest::Approx(fp8 ? 1978.9 : 989.4).epsilon(1e-3));
  }
}

TEST_CASE("the stages are the plan's and each says its rank's memory") {
  const Json d = document(test::runs()[2]);
  REQUIRE(d["stages"].size() == 8);
  int layers = 0;
  double most = 0;
  for (std::size_t s = 0; s < 8; ++s) {
    const Json& stage = d["stages"][s];
    CHECK(stage["stage"] == s);
    CHECK(stage["rank"] == s % 4);
    CHECK(stage["layers"] == d["input"]["derived"]["layers_per_stage"][s]);
    CHECK(stage["end_s"] <= d["step_time_s"]);
    layers += stage["layers"].get<int>();
    most = std::max(most, stage["reserved_gib"].get<double>());
  }
  CHECK(layers == 32);
  CHECK(most == d["peak_mem_gib"].get<double>());
}

TEST_CASE("the input that is shown reads back to the same forecast") {
  for (const std::string& yaml : test::runs()) {
    CAPTURE(yaml);
    Json first = document(yaml);
    Json run = first["input"];
    run.erase("derived");
    Json again = document(run.dump());
    // Nothing is open any more, so nothing is assumed; what derives from the model keeps its value.
    for (Json* d : {&first, &again}) {
      d->erase("assumptions");
      d->erase("top_assumption");
    }
    CHECK(again == first);
  }
}

TEST_CASE("the input of any plan reads back to that plan on that cluster") {
  int plans = 0;
  for (const test::PlanList& list : test::golden_plans()) {
    Forecaster forecaster(list.scenario, list.profile);
    for (std::size_t i = 0; i < list.plans.size(); i += 3, ++plans) {
      CAPTURE(test::describe(list.scenario, list.plans[i]));
      const Forecast f = forecaster.explain({list.scenario, list.plans[i], {}, {}});
      Json run = Json::parse(forecast_json(f))["input"];
      run.erase("derived");
      const Job again = test::job_of(run.dump());
      CHECK(again.plan == list.plans[i]);
      for (const Assumption& a : again.assumptions)
        CHECK(a.key == "parallelism.stage_layers");  // left to the software's rule, as before
      Forecaster other(again.scenario, list.profile);
      CHECK(other.evaluate(again.plan).step_seconds == f.metrics.step_seconds);
    }
  }
  CHECK(plans >= 40);
}

TEST_CASE("the event engine leaves its fingerprint, the analytic one none") {
  CHECK(!document(test::kEight).contains("event_fingerprint"));
  const Json d = document(test::kEight, EngineKind::kDes);
  CHECK(d["engine"] == "des");
  CHECK(d["event_fingerprint"].get<std::string>().size() == 16);
  CHECK(d["event_fingerprint"] == document(test::kEight, EngineKind::kDes)["event_fingerprint"]);
}

TEST_CASE("a status stands alone in its document") {
  const Json d = Json::parse(status_json("unsupported: schedule \"zbv\"\n"));
  CHECK(d == Json{{"status", "unsupported: schedule \"zbv\"\n"}, {"schema_version", 1}});
}
