#include "model/engine/analytic.hpp"

#include <algorithm>

#include "base/contract.hpp"

namespace forerun {

namespace {

constexpr std::size_t kCompute = static_cast<std::size_t>(slot_of(Stream::kCompute));
constexpr std::size_t kPipe = static_cast<std::size_t>(slot_of(Stream::kPipe));
constexpr std::size_t kHost = static_cast<std::size_t>(slot_of(Stream::kHost));

std::size_t idx(std::int64_t i) { return static_cast<std::size_t>(i); }

/// Messages from one stage to its neighbour, in the order of microbatches: a ring of arrivals.
struct Mailbox {
  std::vector<double> arrival;
  std::int64_t sent = 0;
  std::int64_t received = 0;

  void reset(std::int64_t capacity) {
    arrival.assign(idx(capacity), 0.0);
    sent = received = 0;
  }
  void put(double time) {
    FR_DEBUG_ASSERT(sent - received < static_cast<std::int64_t>(arrival.size()));
    arrival[idx(sent++) % arrival.size()] = time;
  }
  [[nodiscard]] bool empty() const { return sent == received; }
  double take() { return arrival[idx(received++) % arrival.size()]; }
};

double device_end(const RankState& state) {
  double end = 0;
  for (int s = 0; s < kStreams; ++s) {
    if (s != slot_of(Stream::kHost)) end = std::max(end, state.at[idx(s)]);
  }
  return end;
}

}  // namespace

class AnalyticEngine::Pipeline {
 public:
  Pipeline(const ProgramPool& pool, const RateTable& rates)
      : pool_(pool), rates_(rates), chains_(pool, rates_) {}

  void run(const Program& program, Timeline& out, bool follow) {
    FR_DEBUG_ASSERT(program.pool == &pool_);
    program_ = &program;
    follow_ = follow;
    begin(out);
    run_cycles();
    total_cycles_limit_ = cycles_;
    run_until([&](const Rank& r) { return r.at_barrier || r.done; });
    synchronise();
    run_until([](const Rank& r) { return r.done; });
    finish();
  }

 private:
  struct Rank {
    RankState state;
    std::size_t position = 0;  // in the phase
    int phase = 0;             // 0 prefix, 1 cycle, 2 suffix
    std::int64_t cycles = 0;   // of the cycle that were completed
    bool at_barrier = false;
    bool released = false;
    bool done = false;
    SlotBreakdowns spent{};
  };
  struct KnownChain {
    enum class Form { kUnknown, kLinear, kGeneral } form = Form::kUnknown;
    LinearMap map;
  };

  // ---- set-up and results --------------------------------------------------------------------

  void begin(Timeline& out) {
    out_ = &out;
    const Program& p = *program_;
    out.stage_end.assign(p.stages.size(), 0.0);
    out.rank_end.assign(idx(p.ranks), 0.0);
    ranks_.resize(idx(p.ranks));
    for (Rank& r : ranks_) {
      r.state.at.fill(0);
      r.state.running.clear();
      r.position = 0;
      r.phase = 0;
      r.cycles = 0;
      r.at_barrier = r.released = r.done = false;
      if (follow_) r.spent = {};
    }
    const std::int64_t window = p.schedule->base_microbatches + 2 * p.schedule->stride + 2;
    forward_.resize(p.stages.size());
    backward_.resize(p.stages.size());
    for (Mailbox& box : forward_) box.reset(window);
    for (Mailbox& box : backward_) box.reset(window);
    cycles_ = p.repeats;
    message_ = p.ranks > 1 ? p.message_seconds : 0.0;
  }

  void finish() {
    double step = 0;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      const RankState& state = ranks_[r].state;
      out_->rank_end[r] = std::max(device_end(state), state.at[kHost]);
      if (out_->rank_end[r] > step) {
        step = out_->rank_end[r];
        out_->last_rank = static_cast<int>(r);
      }
    }
    out_->step_seconds = step;
    if (follow_) out_->breakdown = breakdown(ranks_[idx(out_->last_rank)]);
  }

  [[nodiscard]] static Breakdown breakdown(const Rank& rank) {
    std::size_t last = 0;
    for (std::size_t s = 0; s < static_cast<std::size_t>(kStreams); ++s) {
      if (rank.state.at[s] > rank.state.at[last]) last = s;
    }
    return rank.spent[last];
  }

  // ---- one action ----------------------------------------------------------------------------

  [[nodiscard]] const RankSchedule& schedule(std::size_t rank) const {
    return program_->schedule->ranks[rank];
  }

  [[nodiscard]] static const std::vector<Action>& actions(const RankSchedule& s, int phase) {
    return phase == 0 ? s.prefix : phase == 1 ? s.cycle : s.suffix;
  }

  /// Runs the next action of a rank; false where it has to wait for a neighbour or the barrier, or
  /// has reached the limit of cycles.
  bool step(std::size_t r) {
    Rank& rank = ranks_[r];
    if (!enter_phase(r)) return false;
    const Action action = actions(schedule(r), rank.phase)[rank.position];
    if (action.kind == ActionKind::kOptimizer && !rank.released) {
      rank.at_barrier = true;
      return false;
    }
    const int stage = program_->stage_of(static_cast<int>(r), action.chunk);
    if (!receive(rank, action, stage)) return false;
    run_chain(rank, program_->stages[idx(stage)].chain[static_cast<std::size_t>(action.kind)]);
    send(rank, action, stage);
    if (action.kind == ActionKind::kReduce) {
      out_->stage_end[idx(stage)] = device_end(rank.state);
    }
    ++rank.position;
    if (rank.phase == 1 && rank.position == schedule(r).cycle.size()) {
      rank.position = 0;
      ++rank.cycles;
    }
    return true;
  }

  /// Moves a rank to its next phase where the present one is used up.
  bool enter_phase(std::size_t r) {
    Rank& rank = ranks_[r];
    const RankSchedule& s = schedule(r);
    if (rank.phase == 0 && rank.position == s.prefix.size()) {
      rank.phase = 1;
      rank.position = 0;
    }
    if (rank.phase == 1 && rank.position == 0) {
      if (rank.cycles == cycles_) {
        rank.phase = 2;
      } else if (rank.cycles >= total_cycles_limit_) {
        return false;
      }
    }
    if (rank.phase == 2 && rank.position == s.suffix.size()) rank.done = true;
    return !rank.done;
  }

  bool receive(Rank& rank, const Action& action, int stage) {
    const bool forward = is_forward(action.kind) && stage > 0;
    const bool backward = is_backward(action.kind) && stage + 1 < stages();
    if (!forward && !backward) return true;
    Mailbox& box = forward ? forward_[idx(stage)] : backward_[idx(stage)];
    if (box.empty()) return false;
    const double arrival = box.take();
    wait_for_host(rank);
    double& compute = rank.state.at[kCompute];
    if (arrival <= compute) return true;
    if (follow_) {
      const double gap = arrival - compute, on_wire = std::min(gap, message_);
      Breakdown& spent = rank.spent[kCompute];
      spent[static_cast<std::size_t>(Category::kExposedPp)] += on_wire;
      spent[static_cast<std::size_t>(Category::kBubble)] += gap - on_wire;
    }
    compute = arrival;
    return true;
  }

  /// What the engine itself puts on the compute stream is launched by the host like all else.
  void wait_for_host(Rank& rank) {
    if (rank.state.at[kHost] <= rank.state.at[kCompute]) return;
    rank.state.at[kCompute] = rank.state.at[kHost];
    if (follow_) rank.spent[kCompute] = rank.spent[kHost];
  }

  void send(Rank& rank, const Action& action, int stage) {
    const bool forward = is_forward(action.kind) && stage + 1 < stages();
    const bool backward = is_backward(action.kind) && stage > 0;
    if (!forward && !backward) return;
    double& pipe = rank.state.at[kPipe];
    double& compute = rank.state.at[kCompute];
    const double host = rank.state.at[kHost];
    const std::size_t source = host > std::max(pipe, compute) ? kHost
                               : pipe > compute               ? kPipe
                                                              : kCompute;
    const double arrival = rank.state.at[source] + message_;
    if (follow_) {
      Breakdown path = rank.spent[source];
      path[static_cast<std::size_t>(Category::kExposedPp)] += message_;
      rank.spent[kPipe] = path;
      if (program_->blocking_sends) rank.spent[kCompute] = path;
    }
    pipe = arrival;
    if (program_->blocking_sends) compute = arrival;
    (forward ? forward_[idx(stage + 1)] : backward_[idx(stage - 1)]).put(arrival);
  }

  [[nodiscard]] int stages() const { return static_cast<int>(program_->stages.size()); }

  void run_chain(Rank& rank, ChainId id) {
    if (!id.valid()) return;
    const Chain& chain = pool_[id];
    if (follow_) {
      chains_.run(chain, rank.state, rank.spent);
      return;
    }
    KnownChain& known = known_chain(id);
    if (known.form == KnownChain::Form::kLinear && rank.state.running.empty()) {
      rank.state.at = known.map(rank.state.at);
    } else {
      chains_.run(chain, rank.state);
    }
  }

  KnownChain& known_chain(ChainId id) {
    const std::size_t at = idx(id.index());
    if (at >= known_.size()) known_.resize(at + 1);
    KnownChain& known = known_[at];
    if (known.form == KnownChain::Form::kUnknown) {
      const bool linear = is_linear(pool_[id], pool_, rates_);
      known.form = linear ? KnownChain::Form::kLinear : KnownChain::Form::kGeneral;
      if (linear) known.map = linear_map(pool_[id], pool_);
    }
    return known;
  }

  // ---- cycles --------------------------------------------------------------------------------

  template <class Reached>
  void run_until(Reached reached) {
    bool all = false;
    while (!all) {
      bool moved = false;
      all = true;
      for (std::size_t r = 0; r < ranks_.size(); ++r) {
        while (!reached(ranks_[r]) && step(r)) moved = true;
        all &= reached(ranks_[r]);
      }
      FR_ASSERT(all || moved);
    }
  }

  /// Runs cycle after cycle on all ranks until the state repeats, then skips whole periods.
  void run_cycles() {
    total_cycles_limit_ = 0;
    period_.clear();
    pattern_.clear();
    spent_history_.clear();
    for (std::int64_t target = 1; target <= cycles_; ++target) {
      reach_cycle(target);
      note_state();
      const int period = period_.find(leads_);
      if (period == 0) continue;
      const std::int64_t furthest = furthest_cycle();
      const std::int64_t periods = (cycles_ - furthest) / period;
      if (periods > 0) skip(periods, period);
      return;
    }
  }

  [[nodiscard]] std::int64_t furthest_cycle() const {
    std::int64_t most = 0;
    for (const Rank& r : ranks_) most = std::max(most, r.cycles);
    return most + 1;  // a rank may stand inside its next cycle
  }

  /// Every rank completes `target` cycles; where ranks need it, others may run further ahead.
  void reach_cycle(std::int64_t target) {
    total_cycles_limit_ = std::max(total_cycles_limit_, target);
    const auto reached = [&](const Rank& r) { return r.cycles >= target || r.phase == 2; };
    bool all = false;
    while (!all) {
      bool moved = false;
      all = true;
      for (std::size_t r = 0; r < ranks_.size(); ++r) {
        while (!reached(ranks_[r]) && step(r)) moved = true;
        all &= reached(ranks_[r]);
      }
      if (all || moved) continue;
      // Stuck: let ranks that have reached the target go on until someone can move.
      ++total_cycles_limit_;
      for (std::size_t r = 0; r < ranks_.size(); ++r) moved |= step(r);
      FR_ASSERT(moved);
    }
  }

  /// The state of all ranks and of the messages under way as one vector of times.
  void note_state() {
    times_.clear();
    leads_.clear();
    if (pattern() != pattern_) {
      pattern_ = pattern();
      period_.clear();
    }
    for (const Rank& r : ranks_) {
      leads_.push_back(static_cast<int>(times_.size() + kCompute));
      times_.insert(times_.end(), r.state.at.begin(), r.state.at.end());
      for (const RunningCollective& c : r.state.running) {
        times_.push_back(c.begin);
        times_.push_back(c.end);
      }
    }
    each_message([&](double& time) { times_.push_back(time); });
    period_.push(times_);
    if (!follow_) return;
    spent_history_.emplace_back();
    for (const Rank& r : ranks_) spent_history_.back().push_back(r.spent);
  }

  /// Where each rank stands beside the slowest one: states compare only where this is the same.
  [[nodiscard]] std::vector<std::int64_t> pattern() const {
    std::int64_t least = ranks_[0].cycles;
    for (const Rank& r : ranks_) least = std::min(least, r.cycles);
    std::vector<std::int64_t> out;
    for (const Rank& r : ranks_) {
      out.push_back(r.cycles - least);
      out.push_back(static_cast<std::int64_t>(r.position));
    }
    return out;
  }

  template <class Visit>
  void each_message(Visit visit) {
    for (auto* boxes : {&forward_, &backward_}) {
      for (Mailbox& box : *boxes) {
        for (std::int64_t i = box.received; i < box.sent; ++i) {
          visit(box.arrival[idx(i) % box.arrival.size()]);
        }
      }
    }
  }

  void skip(std::int64_t periods, int period) {
    const std::vector<double>& shift = period_.shift();
    const auto times = static_cast<double>(periods);
    std::size_t i = 0;
    const auto advance = [&](double& time) { time += times * shift[i++]; };
    for (Rank& r : ranks_) {
      for (double& time : r.state.at) advance(time);
      for (RunningCollective& c : r.state.running) {
        advance(c.begin);
        advance(c.end);
      }
    }
    each_message(advance);
    cycles_ -= periods * period;
    if (!follow_) return;
    const auto& before = spent_history_[spent_history_.size() - 1 - static_cast<std::size_t>(period)];
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      for (std::size_t s = 0; s < ranks_[r].spent.size(); ++s) {
        for (std::size_t c = 0; c < kCategories; ++c) {
          double& spent = ranks_[r].spent[s][c];
          spent += times * (spent - before[r][s][c]);
        }
      }
    }
  }

  // ---- barrier -------------------------------------------------------------------------------

  /// The reduction over all ranks between the gradient norm and the optimizer.
  void synchronise() {
    double latest = 0;
    for (Rank& r : ranks_) {
      wait_for_host(r);
      latest = std::max(latest, r.state.at[kCompute]);
    }
    const double after = latest + program_->sync_seconds;
    for (Rank& r : ranks_) {
      double& compute = r.state.at[kCompute];
      if (follow_) {
        Breakdown& spent = r.spent[kCompute];
        spent[static_cast<std::size_t>(Category::kBubble)] += latest - compute;
        spent[static_cast<std::size_t>(Category::kExposedDp)] += after - latest;
      }
      compute = after;
      r.released = true;
      r.at_barrier = false;
    }
  }

  const ProgramPool& pool_;
  RateTable rates_;
  ChainRunner chains_;
  std::vector<KnownChain> known_;
  const Program* program_ = nullptr;
  Timeline* out_ = nullptr;
  bool follow_ = false;
  double message_ = 0;
  std::int64_t cycles_ = 0;              // still to be run in all, after skipping
  std::int64_t total_cycles_limit_ = 0;  // no rank begins a cycle beyond
  std::vector<Rank> ranks_;
  std::vector<Mailbox> forward_, backward_;  // by receiving stage
  PeriodFinder period_;
  std::vector<double> times_;
  std::vector<int> leads_;
  std::vector<std::int64_t> pattern_;
  std::vector<std::vector<SlotBreakdowns>> spent_history_;
};

AnalyticEngine::AnalyticEngine(const ProgramPool& pool, const RateTable& rates)
    : pipeline_(std::make_unique<Pipeline>(pool, rates)) {}
AnalyticEngine::~AnalyticEngine() = default;

void AnalyticEngine::run(const Program& program, Timeline& out) {
  pipeline_->run(program, out, false);
}

void AnalyticEngine::explain(const Program& program, Timeline& out) {
  pipeline_->run(program, out, true);
}

}  // namespace forerun
