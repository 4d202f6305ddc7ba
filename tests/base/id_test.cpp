#include "base/id.hpp"

#include <doctest/doctest.h>

#include <concepts>
#include <map>

namespace forerun {
namespace {

using RoadId = Id<struct RoadTag>;
using TownId = Id<struct TownTag>;

template <class A, class B>
concept Compares = requires(A a, B b) {
  a == b;
};
template <class A, class B>
concept Orders = requires(A a, B b) {
  a < b;
};

static_assert(Compares<RoadId, RoadId> && !Compares<RoadId, TownId>);
static_assert(Orders<RoadId, RoadId> && !Orders<RoadId, TownId>);
static_assert(!std::constructible_from<RoadId, TownId> && !std::assignable_from<RoadId&, TownId>);
static_assert(std::constructible_from<RoadId, int> && !std::convertible_to<int, RoadId>);
static_assert(!std::convertible_to<RoadId, int>);

}  // namespace

TEST_CASE("an id is invalid until it has an index") {
  CHECK_FALSE(RoadId().valid());
  CHECK(RoadId(0).valid());
  CHECK(RoadId(7).index() == 7);
}

TEST_CASE("ids of one kind compare by their index") {
  CHECK(RoadId(3) == RoadId(3));
  CHECK(RoadId(3) != RoadId(4));
  CHECK(RoadId(3) < RoadId(4));
  CHECK(RoadId() < RoadId(0));
  std::map<RoadId, int> by_road{{RoadId(2), 20}, {RoadId(1), 10}};
  CHECK(by_road.begin()->second == 10);
}

}  // namespace forerun
