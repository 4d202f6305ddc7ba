#include "sim/engine.hpp"

#include <algorithm>
#include <deque>

#include "base/contract.hpp"
#include "sim/event_queue.hpp"
#include "sim/rank_program.hpp"

namespace forerun {
namespace {

using InstanceId = std::int64_t;
constexpr InstanceId kNobody = -1;
constexpr std::size_t kComputeSlot = static_cast<std::size_t>(slot_of(Stream::kCompute));
constexpr std::size_t kPipeSlot = static_cast<std::size_t>(slot_of(Stream::kPipe));

/// One operation of the unrolled program, or a wait, send, barrier or probe between actions.
struct Instance {
  const Operation* op = nullptr;  // null: one of the engine's own
  std::int8_t stream = kNoSlot;
  std::int32_t rank = 0;
  int pending = 0;  // things that have to end, or be issued, before it starts
  double seconds = 0;
  double begin = 0;
  bool started = false;
  bool ended = false;
  std::vector<InstanceId> dependents;
  int probe_of_stage = -1;  // its end is the stage's
  int message_to = -1;      // mailbox that its end fills
  bool barrier = false;     // its end arrives at the barrier
};

/// The kernel that a rank's compute stream is running, with the work it has left.
struct RunningKernel {
  InstanceId id = kNobody;
  double left = 0;  // seconds of work at full rate
  double rate = 1;
  double since = 0;  // when `left` was right
  std::uint32_t revision = 0;
};

struct RankSim {
  RankSim(const Program& whole, int rank) : program(whole, rank) {}
  RankProgram program;
  std::array<InstanceId, kSlots> last{};  // latest instance on a stream, or that records an event
  std::vector<InstanceId> hindering;      // running collectives that slow kernels
  RunningKernel kernel;
  double host = 0;
  double end = 0;
  // Live bytes beyond the resident ones, and their highest, in all and by pool.
  std::array<std::int64_t, kMemoryPools + 1> level{}, peak{};
  InstanceId barrier_gate = kNobody;
};

/// Messages for one stage: instances that wait for the n-th, and arrivals.
struct SimMailbox {
  std::vector<InstanceId> gates;  // by order of reception
  std::int64_t arrived = 0;
};

class Simulation {
 public:
  Simulation(const Program& program, Trace* trace) : program_(program), trace_(trace) {
    for (int r = 0; r < program.ranks; ++r) {
      ranks_.emplace_back(program, r);
      RankSim& rank = ranks_.back();
      rank.last.fill(kNobody);
      queue_.push({0, EventPriority::kIssue, 0, r, kNobody, 0});
    }
    mail_.resize(2 * program.stages.size());
    result_.stage_end.assign(program.stages.size(), 0.0);
    message_ = program.ranks > 1 ? program.message_seconds : 0.0;
  }

  SimResult run() {
    while (!queue_.empty()) {
      const SimEvent event = queue_.pop();
      if (event.priority == EventPriority::kIssue) {
        queue_.mix(event);
        event.subject == kNobody ? enter_blocks(event.rank) : satisfied(event.subject);
      } else if (event.priority == EventPriority::kMessage) {
        queue_.mix(event);
        release_barrier();
      } else if (is_current(event)) {
        queue_.mix(event);
        end(event.subject);
      }
    }
    return finish();
  }

 private:
  RankSim& rank(std::int32_t r) { return ranks_[static_cast<std::size_t>(r)]; }
  Instance& instance(InstanceId id) { return instances_[static_cast<std::size_t>(id)]; }
  [[nodiscard]] const Instance& instance(InstanceId id) const {
    return instances_[static_cast<std::size_t>(id)];
  }
  static std::size_t at(int slot) { return static_cast<std::size_t>(slot); }

  // ---- unrolling -----------------------------------------------------------------------------

  /// The host enters blocks until one takes it time.
  void enter_blocks(std::int32_t r) {
    RankSim& rk = rank(r);
    while (true) {
      switch (rk.program.next()) {
        case RankProgram::Step::kActionBegins:
          begin_action(r);
          break;
        case RankProgram::Step::kBlock:
          issue(r, rk.program.block());
          if (rk.program.block().host_seconds > 0) {
            note_host(r, rk.program.block());
            rk.host += rk.program.block().host_seconds;
            queue_.push({rk.host, EventPriority::kIssue, 0, r, kNobody, 0});
            return;
          }
          break;
        case RankProgram::Step::kActionEnds:
          end_action(r);
          break;
        case RankProgram::Step::kDone:
          return;
      }
    }
  }

  InstanceId add(Instance made) {
    const auto id = static_cast<InstanceId>(instances_.size());
    instances_.push_back(std::move(made));
    return id;
  }

  void depend(InstanceId id, InstanceId on) {
    if (on == kNobody || instance(on).ended) return;
    instance(on).dependents.push_back(id);
    ++instance(id).pending;
  }

  /// Puts an instance at the end of its stream.
  void enqueue(InstanceId id) {
    Instance& made = instance(id);
    if (made.stream != kNoSlot) {
      InstanceId& last = rank(made.rank).last[at(made.stream)];
      const InstanceId before = last;
      last = id;
      depend(id, before);
    }
  }

  void issue(std::int32_t r, const Block& block) {
    RankSim& rk = rank(r);
    for (const MemoryEvent& event : block.events)
      allocate(rk, event);
    const auto first = static_cast<InstanceId>(instances_.size());
    for (const Operation& op : block.operations) {
      Instance made;
      made.op = &op;
      made.stream = op.stream;
      made.rank = r;
      made.seconds = op.seconds;
      made.pending = 1;  // until it is issued
      const InstanceId id = add(std::move(made));
      for (const std::int16_t a : op.after)
        depend(id, first + a);
      for (const std::int8_t w : op.waits)
        depend(id, rk.last[at(w)]);
      enqueue(id);
      if (op.records != kNoSlot) rk.last[at(op.records)] = id;
      queue_.push({rk.host + op.issued_at, EventPriority::kIssue, 0, r, id, 0});
    }
  }

  /// The allocator acts when the host issues, whatever the device is doing.
  static void allocate(RankSim& rk, const MemoryEvent& event) {
    const auto change = [&](std::size_t i, std::int64_t bytes) {
      rk.level[i] += bytes;
      rk.peak[i] = std::max(rk.peak[i], rk.level[i]);
    };
    change(0, event.bytes);
    change(1 + static_cast<std::size_t>(event.pool), event.held);
  }

  /// An instance of the engine's own, on a stream, that starts when its stream reaches it and
  /// `after` has ended.
  InstanceId own(std::int32_t r, int slot, double seconds, InstanceId after) {
    Instance made;
    made.stream = static_cast<std::int8_t>(slot);
    made.rank = r;
    made.seconds = seconds;
    made.pending = 1;
    const InstanceId id = add(std::move(made));
    depend(id, after);
    enqueue(id);
    return id;
  }

  void begin_action(std::int32_t r) {
    RankSim& rk = rank(r);
    const Action& action = rk.program.action();
    const int stage = rk.program.stage();
    if (action.kind == ActionKind::kOptimizer && rk.barrier_gate == kNobody) {
      return begin_barrier(r);
    }
    const bool forward = is_forward(action.kind) && stage > 0;
    const bool backward = is_backward(action.kind) && stage + 1 < stages();
    if (!forward && !backward) return;
    SimMailbox& box = mailbox(stage, forward);
    const InstanceId gate = own(r, slot_of(Stream::kCompute), 0, kNobody);
    const bool there = box.arrived > static_cast<std::int64_t>(box.gates.size());
    box.gates.push_back(gate);
    if (!there) ++instance(gate).pending;
    satisfied(gate);
  }

  void end_action(std::int32_t r) {
    RankSim& rk = rank(r);
    const Action& action = rk.program.action();
    const int stage = rk.program.stage();
    const bool forward = is_forward(action.kind) && stage + 1 < stages();
    const bool backward = is_backward(action.kind) && stage > 0;
    if (forward || backward) {
      const InstanceId sent = own(r, slot_of(Stream::kPipe), message_, rk.last[kComputeSlot]);
      instance(sent).message_to = mailbox_index(forward ? stage + 1 : stage - 1, forward);
      satisfied(sent);
      if (program_.blocking_sends) {
        satisfied(own(r, slot_of(Stream::kCompute), 0, sent));
      }
    }
    if (action.kind == ActionKind::kReduce) probe(r, stage);
  }

  /// An instance outside all streams that ends when the device streams have.
  void probe(std::int32_t r, int stage) {
    Instance made;
    made.rank = r;
    made.pending = 1;
    made.probe_of_stage = stage;
    const InstanceId id = add(std::move(made));
    for (int s = slot_of(Stream::kHost) + 1; s < kStreams; ++s)
      depend(id, rank(r).last[at(s)]);
    satisfied(id);
  }

  [[nodiscard]] int stages() const { return static_cast<int>(program_.stages.size()); }
  [[nodiscard]] static int mailbox_index(int stage, bool forward) {
    return 2 * stage + (forward ? 0 : 1);
  }
  SimMailbox& mailbox(int stage, bool forward) {
    return mail_[static_cast<std::size_t>(mailbox_index(stage, forward))];
  }

  // ---- barrier -------------------------------------------------------------------------------

  void begin_barrier(std::int32_t r) {
    RankSim& rk = rank(r);
    const InstanceId arrive = own(r, slot_of(Stream::kCompute), 0, kNobody);
    instance(arrive).barrier = true;
    rk.barrier_gate = own(r, slot_of(Stream::kCompute), 0, kNobody);  // held until released
    satisfied(arrive);
  }

  void arrive_at_barrier() {
    if (++arrived_ == program_.ranks) {
      queue_.push(
          {queue_.now() + program_.sync_seconds, EventPriority::kMessage, 0, 0, kNobody, 0});
    }
  }

  void release_barrier() {
    for (RankSim& rk : ranks_)
      satisfied(rk.barrier_gate);
  }

  // ---- running -------------------------------------------------------------------------------

  void satisfied(InstanceId id) {
    Instance& made = instance(id);
    FR_DEBUG_ASSERT(made.pending > 0);
    if (--made.pending == 0) start(id);
  }

  void start(InstanceId id) {
    Instance& made = instance(id);
    made.started = true;
    made.begin = queue_.now();
    if (made.stream == static_cast<int>(kComputeSlot) && made.seconds > 0) {
      start_kernel(id);
      return;
    }
    queue_.push({queue_.now() + made.seconds, EventPriority::kEnd, 0, made.rank, id, 0});
    if (hinders(made)) {
      rank(made.rank).hindering.push_back(id);
      change_rate(made.rank);
    }
  }

  [[nodiscard]] static bool hinders(const Instance& made) {
    return made.op != nullptr && made.op->slows;
  }

  void start_kernel(InstanceId id) {
    RankSim& rk = rank(instance(id).rank);
    rk.kernel.id = id;
    rk.kernel.left = instance(id).seconds;
    rk.kernel.since = queue_.now();
    rk.kernel.rate = rate_of(rk);
    schedule_kernel_end(rk);
  }

  /// Collectives that stand before the kernel in program order slow it.
  [[nodiscard]] double rate_of(const RankSim& rk) {
    double rate = 1;
    const Instance& kernel = instance(rk.kernel.id);
    if (kernel.op == nullptr) return rate;
    for (const InstanceId c : rk.hindering) {
      if (c < rk.kernel.id) {
        rate *= program_.rates.rate(kernel.op->family, instance(c).op->collective);
      }
    }
    return rate;
  }

  void change_rate(std::int32_t r) {
    RankSim& rk = rank(r);
    if (rk.kernel.id == kNobody) return;
    const double rate = rate_of(rk);
    if (rate == rk.kernel.rate) return;
    rk.kernel.left -= rk.kernel.rate * (queue_.now() - rk.kernel.since);
    rk.kernel.since = queue_.now();
    rk.kernel.rate = rate;
    schedule_kernel_end(rk);
  }

  void schedule_kernel_end(RankSim& rk) {
    const double when = rk.kernel.since + std::max(0.0, rk.kernel.left) / rk.kernel.rate;
    queue_.push({when, EventPriority::kEnd, 0, instance(rk.kernel.id).rank, rk.kernel.id,
                 ++rk.kernel.revision});
  }

  [[nodiscard]] bool is_current(const SimEvent& event) {
    const RankSim& rk = rank(event.rank);
    return event.revision == 0 ||
           (rk.kernel.id == event.subject && rk.kernel.revision == event.revision);
  }

  void end(InstanceId id) {
    Instance& made = instance(id);
    made.ended = true;
    RankSim& rk = rank(made.rank);
    rk.end = std::max(rk.end, queue_.now());
    note(made);
    if (rk.kernel.id == id) rk.kernel.id = kNobody;
    if (hinders(made)) {
      std::erase(rk.hindering, id);
      change_rate(made.rank);
    }
    if (made.probe_of_stage >= 0) {
      result_.stage_end[static_cast<std::size_t>(made.probe_of_stage)] = queue_.now();
    }
    const int message_to = made.message_to;
    const bool barrier = made.barrier;
    const std::vector<InstanceId> dependents = std::move(made.dependents);
    for (const InstanceId d : dependents)
      satisfied(d);
    if (message_to >= 0) deliver(message_to);
    if (barrier) arrive_at_barrier();
  }

  void deliver(int box_index) {
    SimMailbox& box = mail_[static_cast<std::size_t>(box_index)];
    const auto n = static_cast<std::size_t>(box.arrived++);
    if (n < box.gates.size()) satisfied(box.gates[n]);
  }

  void note(const Instance& made) {
    if (trace_ == nullptr || made.stream == kNoSlot || made.seconds == 0) return;
    const bool block_op = made.op != nullptr;
    trace_->spans.push_back({made.rank, made.stream, block_op ? made.op->name : "send",
                             block_op ? to_text(made.op->category) : "exposed_pp", made.begin,
                             queue_.now()});
  }

  void note_host(std::int32_t r, const Block& block) {
    if (trace_ == nullptr) return;
    const double begin = rank(r).host;
    trace_->spans.push_back(
        {r, slot_of(Stream::kHost), block.name, "host", begin, begin + block.host_seconds});
  }

  SimResult finish() {
    for (RankSim& rk : ranks_) {
      const double end = std::max(rk.end, rk.host);
      result_.rank_end.push_back(end);
      result_.step_seconds = std::max(result_.step_seconds, end);
      MemoryFold memory;
      memory.all = {rk.level[0], rk.peak[0]};
      for (std::size_t p = 0; p < kMemoryPools; ++p) {
        memory.pool[p] = {rk.level[p + 1], rk.peak[p + 1]};
      }
      result_.memory.push_back(memory);
    }
    for (const Instance& made : instances_)
      FR_ASSERT(made.ended);
    result_.events = queue_.count();
    result_.fingerprint = queue_.fingerprint();
    return std::move(result_);
  }

  const Program& program_;
  Trace* trace_;
  EventQueue queue_;
  std::deque<RankSim> ranks_;
  std::vector<Instance> instances_;
  std::vector<SimMailbox> mail_;
  double message_ = 0;
  int arrived_ = 0;
  SimResult result_;
};

}  // namespace

SimResult simulate(const Program& program, Trace* trace) {
  if (trace != nullptr) {
    trace->ranks = program.ranks;
    trace->virtual_stages = program.schedule->virtual_stages;
  }
  return Simulation(program, trace).run();
}

}  // namespace forerun
