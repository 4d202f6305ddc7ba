#pragma once

// A table from small keys to values that never move, for what is worked out once per sweep. The
// last key is looked at first, since a sweep asks for the same one many times in a row.

#include <cstdint>
#include <deque>
#include <functional>
#include <unordered_map>
#include <utility>

namespace forerun {

/// Hash of integers and enums one after the other.
template <class... Parts>
std::size_t hash_of(Parts... parts) {
  std::uint64_t h = 0x9E3779B97F4A7C15;
  const auto mix = [&](std::uint64_t part) {
    h = (h ^ part) * 0xFF51AFD7ED558CCD;
    h ^= h >> 32;
  };
  (mix(static_cast<std::uint64_t>(parts)), ...);
  return h;
}

/// `Key` has operator== and hash().
template <class Key, class Value>
class Memo {
 public:
  /// The value of `key`; `make()` is called where it is not known yet.
  template <class Make>
  Value& find_or_make(const Key& key, Make make) {
    if (last_ != nullptr && *last_key_ == key) return *last_;
    auto found = index_.find(key);
    if (found == index_.end()) {
      Value& made = values_.emplace_back(make());
      found = index_.emplace(key, &made).first;
    }
    last_key_ = &found->first;
    last_ = found->second;
    return *last_;
  }

  [[nodiscard]] std::size_t size() const { return values_.size(); }

 private:
  struct Hash {
    std::size_t operator()(const Key& key) const { return key.hash(); }
  };
  std::unordered_map<Key, Value*, Hash> index_;
  std::deque<Value> values_;
  const Key* last_key_ = nullptr;
  Value* last_ = nullptr;
};

}  // namespace forerun
