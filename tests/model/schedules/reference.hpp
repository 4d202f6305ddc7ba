#pragma once

// Pipeline schedules written flat, from the papers' words rather than from the generators: what
// limits a rank is how many forwards of it wait for their backward.

#include <map>
#include <vector>

#include "model/schedules/schedule.hpp"

namespace forerun::test {

/// A schedule with at most `in_flight` forwards whose backward is to come: a rank runs forwards
/// until so many wait, then a backward whenever it may not run a forward. Forwards go through
/// `chunks` in rounds of `round` microbatches, backwards through the chunks the other way.
inline std::vector<Action> limited(std::int64_t microbatches, int chunks, std::int64_t round,
                                   std::int64_t in_flight) {
  const std::int64_t total = microbatches * chunks;
  std::map<int, std::int64_t> forwards, backwards;  // of each chunk, so far
  const auto next = [&](std::int64_t k, bool forward) {
    const auto turn = static_cast<int>(k % (round * chunks) / round);
    const int chunk = forward ? turn : chunks - 1 - turn;
    std::int64_t& microbatch = (forward ? forwards : backwards)[chunk];
    return Action{forward ? ActionKind::kForward : ActionKind::kBackward,
                  static_cast<std::int16_t>(chunk), microbatch++};
  };
  std::vector<Action> order;
  for (std::int64_t f = 0, b = 0; b < total;) {
    const bool forward = f < total && f - b < in_flight;
    order.push_back(next(forward ? f : b, forward));
    ++(forward ? f : b);
  }
  return order;
}

/// 1F1B (PipeDream-flush; Narayanan et al., arXiv 2104.04473, section 2.2.1): a rank holds at most
/// as many microbatches as there are stages from it to the end.
inline std::vector<Action> one_f_one_b(int ranks, int rank, std::int64_t microbatches) {
  return limited(microbatches, 1, microbatches, ranks - rank);
}

/// Interleaved 1F1B (Megatron-LM, forward_backward_pipelining_with_interleaving): 2 (P - rank - 1)
/// + (V - 1) x round forwards to warm up, then one forward and one backward in turn, so one more is
/// held. A round is P microbatches; PyTorch stretches it where the microbatches are no multiple.
inline std::vector<Action> interleaved(int ranks, int rank, int chunks, std::int64_t microbatches,
                                       std::int64_t round) {
  return limited(microbatches, chunks, round, 2 * (ranks - rank - 1) + (chunks - 1) * round + 1);
}

/// GPipe (Huang et al., arXiv 1811.06965): all forwards, then all backwards.
inline std::vector<Action> gpipe(std::int64_t microbatches) {
  return limited(microbatches, 1, microbatches, microbatches);
}

inline ScheduleRequest request(int ranks, int chunks, std::int64_t microbatches) {
  return {ranks, chunks, microbatches, 0};
}

/// The most forwards of a rank that wait for their backward at any time.
inline std::int64_t most_in_flight(const std::vector<Action>& order) {
  std::int64_t now = 0, most = 0;
  for (const Action& a : order) {
    now += is_forward(a.kind) ? 1 : is_backward(a.kind) ? -1 : 0;
    most = std::max(most, now);
  }
  return most;
}

/// Every microbatch runs forward once and then backward once in each chunk.
inline bool complete(const std::vector<Action>& order, int chunks, std::int64_t microbatches) {
  std::map<std::pair<int, std::int64_t>, int> state;  // 1: forward has run, 2: both
  for (const Action& a : order) {
    if (!is_forward(a.kind) && !is_backward(a.kind)) continue;
    int& s = state[{a.chunk, a.microbatch}];
    if (s != (is_forward(a.kind) ? 0 : 1)) return false;
    ++s;
  }
  for (const auto& [key, s] : state) {
    if (s != 2 || key.first >= chunks || key.second >= microbatches) return false;
  }
  return static_cast<std::int64_t>(state.size()) == chunks * microbatches;
}

/// Whether ranks that wait for each other's messages, by microbatch, all come to their end.
inline bool ends(const std::vector<std::vector<Action>>& ranks, int chunks) {
  const auto n = static_cast<int>(ranks.size());
  const int stages = n * chunks;
  std::map<std::pair<int, std::int64_t>, bool> forward, backward;  // by stage and microbatch
  std::vector<std::size_t> at(ranks.size(), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (int r = 0; r < n; ++r) {
      const auto& order = ranks[static_cast<std::size_t>(r)];
      for (std::size_t& i = at[static_cast<std::size_t>(r)]; i < order.size(); ++i) {
        const int stage = order[i].chunk * n + r;
        const std::int64_t m = order[i].microbatch;
        if (is_forward(order[i].kind)) {
          if (stage > 0 && !forward[{stage - 1, m}]) break;
          forward[{stage, m}] = true;
        } else if (is_backward(order[i].kind)) {
          if (!forward[{stage, m}]) break;
          if (stage + 1 < stages && !backward[{stage + 1, m}]) break;
          backward[{stage, m}] = true;
        }
        moved = true;
      }
    }
  }
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    if (at[r] != ranks[r].size()) return false;
  }
  return true;
}

}  // namespace forerun::test
