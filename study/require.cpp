#include "study/require.hpp"

#include <cctype>
#include <charconv>
#include <map>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/error.hpp"
#include "base/nearest.hpp"
#include "base/quantity.hpp"

namespace forerun {
namespace {

std::map<std::string, double> values_of(const Forecast& f) {
  const RankMemory& m = f.metrics.memory;
  std::map<std::string, double> out{{"fits", f.metrics.fits ? 1 : 0},
                                    {"p_fits", f.p_fits},
                                    {"reserved_gib", m.reserved / kGiB},
                                    {"allocated_gib", m.allocated / kGiB},
                                    {"active_gib", m.allocated / kGiB},
                                    {"device_gib", m.device / kGiB},
                                    {"resident_gib", m.resident / kGiB},
                                    {"tflops_gpu_full_attention", f.model_flops_full_gpu / 1e12},
                                    {"tflops_gpu_hardware", f.hardware_flops_gpu / 1e12},
                                    {"true", 1},
                                    {"false", 0}};
  const auto add = [&](const std::string& name, const Interval& interval) {
    out[name] = interval.value;
    out[name + "_low"] = interval.low;
    out[name + "_high"] = interval.high;
  };
  add("step_time_s", f.step_time);
  add("tokens_s_gpu", f.tokens_s_gpu);
  add("tflops_gpu", f.tflops_gpu);
  add("mfu", f.mfu);
  add("peak_mem_gib", f.peak_mem);
  return out;
}

/// Recursive descent over: or := and ("||" and)*, and := not ("&&" not)*, not := "!" not | compare,
/// compare := atom (op atom)?, atom := name | number | "(" or ")".
class Condition {
 public:
  Condition(const std::string& text, const Forecast& forecast)
      : text_(text), values_(values_of(forecast)) {}

  bool evaluate() {
    const double value = either();
    skip();
    if (at_ != text_.size()) refuse("what follows is not understood");
    return value != 0;
  }

 private:
  static constexpr int kMostNesting = 64;

  [[noreturn]] void refuse(const std::string& problem) const {
    throw InputError({"--require", 1, static_cast<int>(at_) + 1}, "",
                     "'" + text_ + "': " + problem);
  }
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ')
      ++at_;
  }
  bool take(std::string_view token) {
    skip();
    if (std::string_view(text_).substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }

  [[nodiscard]] bool digits_next() const {
    const std::size_t first = text_[at_] == '-' ? at_ + 1 : at_;
    return first < text_.size() &&
           (std::isdigit(static_cast<unsigned char>(text_[first])) != 0 || text_[first] == '.');
  }

  double either() {
    double value = both();
    while (take("||")) {
      const double other = both();
      value = value != 0 || other != 0 ? 1 : 0;
    }
    return value;
  }
  double both() {
    double value = negation();
    while (take("&&")) {
      const double other = negation();
      value = value != 0 && other != 0 ? 1 : 0;
    }
    return value;
  }
  double negation() {
    skip();
    const bool unequal = std::string_view(text_).substr(at_, 2) == "!=";
    if (!unequal && take("!")) {
      nest();
      const double value = negation() != 0 ? 0 : 1;
      --nesting_;
      return value;
    }
    return comparison();
  }
  double comparison() {
    const double a = atom();
    if (take("<=")) return a <= atom() ? 1 : 0;
    if (take(">=")) return a >= atom() ? 1 : 0;
    if (take("==")) return a == atom() ? 1 : 0;
    if (take("!=")) return a != atom() ? 1 : 0;
    if (take("<")) return a < atom() ? 1 : 0;
    if (take(">")) return a > atom() ? 1 : 0;
    return a;
  }
  double atom() {
    if (take("(")) {
      nest();
      const double value = either();
      if (!take(")")) refuse("a closing parenthesis is wanted");
      --nesting_;
      return value;
    }
    skip();
    double number = 0;
    const char* begin = text_.data() + at_;
    const auto [rest, error] = std::from_chars(begin, text_.data() + text_.size(), number);
    if (error == std::errc{} && digits_next()) {  // "inf", "nan" and "info" are names
      at_ += static_cast<std::size_t>(rest - begin);
      return number;
    }
    return named();
  }
  double named() {
    const std::size_t begin = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_')) {
      ++at_;
    }
    const std::string name = text_.substr(begin, at_ - begin);
    const auto found = values_.find(name);
    if (found != values_.end()) return found->second;
    std::vector<std::string> known;
    for (const auto& [key, value] : values_)
      known.push_back(key);
    at_ = begin;
    refuse(name.empty() ? "a name or a number is wanted"
                        : "unknown name '" + name + "'" + did_you_mean(name, known) +
                              "; known: " + join(known));
  }
  void nest() {
    if (++nesting_ > kMostNesting) refuse("nested too deeply");
  }

  const std::string& text_;
  std::map<std::string, double> values_;
  std::size_t at_ = 0;
  int nesting_ = 0;
};

}  // namespace

bool holds(const std::string& condition, const Forecast& forecast) {
  return Condition(condition, forecast).evaluate();
}

}  // namespace forerun
