#include "base/units.hpp"

#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "tests/base/expect.hpp"

namespace forerun {
namespace {

using test::contains;

/// What is wrong with a text by one of the parsers; "no error" where nothing is.
template <class Parse>
std::string problem(Parse parse, std::string_view text) {
  try {
    parse(text);
  } catch (const UnitError& error) {
    return error.problem;
  }
  return "no error";
}

}  // namespace

TEST_CASE("bytes take powers of 1000 and of 1024 apart") {
  CHECK(parse_bytes("1 B").value() == 1);
  CHECK(parse_bytes("80 GB").value() == 80e9);
  CHECK(parse_bytes("80 GiB").value() == 85899345920.0);  // 80 x 2^30
  CHECK(parse_bytes("64 MiB").value() == 67108864.0);     // 2^26
  CHECK(parse_bytes("4 kB").value() == 4000);
  CHECK(parse_bytes("4 KB").value() == 4000);
  CHECK(parse_bytes("4 KiB").value() == 4096);
  CHECK(parse_bytes("1 ZiB").value() == 1180591620717411303424.0);  // 2^70
  CHECK(parse_bytes("95.04GiB").value() == doctest::Approx(95.04 * 1073741824.0).epsilon(1e-15));
  CHECK(parse_bytes("  1.5   TB ").value() == 1.5e12);
}

TEST_CASE("a small k of 1024 and a misplaced letter are no units") {
  for (const std::string text : {"4 kiB", "4 Kb iB", "4 gB", "4 GIB", "4 iB", "4 mB", "4 GiB/s"}) {
    CHECK_MESSAGE(contains(problem(parse_bytes, text), "wants bytes"), text);
  }
}

TEST_CASE("bits are refused where bytes are wanted and the bytes are named") {
  // 640 Gb are 80e9 bytes, which are 74.51 GiB.
  CHECK(contains(problem(parse_bytes, "640 Gb"), "which is bits (74.51 GiB)"));
  CHECK(contains(problem(parse_bytes, "8 Gib"), "which is bits (1 GiB)"));
}

TEST_CASE("rates take bits and bytes") {
  CHECK(parse_bandwidth("400 Gb/s").value() == 50e9);  // 400 / 8
  CHECK(parse_bandwidth("400 GB/s").value() == 400e9);
  CHECK(parse_bandwidth("3.35 TB/s").value() == 3.35e12);
  CHECK(parse_bandwidth("8 Gib/s").value() == 1073741824.0);
  CHECK(contains(problem(parse_bandwidth, "400 Gb"), "bits or bytes a second"));
  CHECK(contains(problem(parse_bandwidth, "400 Gbps"), "bits or bytes a second"));
  CHECK(bandwidth_in_bytes("400 GB/s"));
  CHECK(bandwidth_in_bytes(" 400 GiB/s "));
  CHECK_FALSE(bandwidth_in_bytes("400 Gb/s"));
}

TEST_CASE("times, rates of work, power and clocks take their own units") {
  CHECK(parse_seconds("2 s").value() == 2);
  CHECK(parse_seconds("13 us").value() == doctest::Approx(13e-6).epsilon(1e-15));
  CHECK(parse_seconds("4 ms").value() == doctest::Approx(4e-3).epsilon(1e-15));
  CHECK(parse_seconds("5 ns").value() == doctest::Approx(5e-9).epsilon(1e-15));
  CHECK(parse_flop_rate("989.4 TFLOP/s").value() == doctest::Approx(989.4e12).epsilon(1e-15));
  CHECK(parse_flop_rate("1.2 EFLOP/s").value() == doctest::Approx(1.2e18).epsilon(1e-15));
  CHECK(parse_watts("700 W") == 700);
  CHECK(parse_watts("0.7 kW") == 700);
  CHECK(parse_hertz("1830 MHz") == 1830e6);
  CHECK(parse_hertz("1.83 GHz") == 1830e6);
  CHECK(contains(problem(parse_seconds, "2 min"), "a time (s, ms, us, ns)"));
  CHECK(contains(problem(parse_seconds, "2 Ms"), "a time"));
  CHECK(contains(problem(parse_flop_rate, "989 TFLOPS"), "989 TFLOP/s"));
  CHECK(contains(problem(parse_watts, "700 Watt"), "watts"));
  CHECK(contains(problem(parse_hertz, "1830 rpm"), "a frequency"));
}

TEST_CASE("a bare number is refused in every dimension") {
  CHECK(contains(problem(parse_bytes, "80"), "a unit is wanted, for instance 80 GiB"));
  CHECK(contains(problem(parse_bandwidth, "400"), "a unit is wanted"));
  CHECK(contains(problem(parse_seconds, "2"), "a unit is wanted"));
  CHECK(contains(problem(parse_flop_rate, "989e12"), "a unit is wanted"));
  CHECK(contains(problem(parse_watts, "700"), "a unit is wanted"));
  CHECK(contains(problem(parse_hertz, "1.8e9"), "a unit is wanted"));
}

TEST_CASE("a number that is none, not above zero or out of range is refused") {
  for (const std::string text : {"", "GiB", "x GiB", "nan GiB", "inf GiB", "+3 GiB", "1e999 GiB"}) {
    CHECK_MESSAGE(contains(problem(parse_bytes, text), "a number with a unit is wanted"), text);
  }
  CHECK(contains(problem(parse_bytes, "-3 GiB"), "must be above 0"));
  CHECK(contains(problem(parse_bytes, "0 GiB"), "must be above 0"));
  CHECK(contains(problem(parse_bytes, "1e300 EB"), "out of range"));  // 1e318 is no double
  CHECK(contains(problem(parse_bandwidth, "1e-300 b/s"), "out of range"));
  CHECK(contains(problem(parse_seconds, "1e-320 ns"), "out of range"));
}

TEST_CASE("a quantity is printed with the unit that gives 1 to 1000") {
  CHECK(text_of(Bytes(77 * kGiB)) == "77 GiB");
  CHECK(text_of(Bytes(1536)) == "1.5 KiB");
  CHECK(text_of(Bytes(12)) == "12 B");
  CHECK(text_of(BytesPerSecond(50e9)) == "50 GB/s");
  CHECK(text_of(BytesPerSecond(3.35e12)) == "3.35 TB/s");
  CHECK(text_of(Seconds(2.46)) == "2.46 s");
  CHECK(text_of(Seconds(0.0123)) == "12.3 ms");
  CHECK(text_of(Seconds(12.1e-6)) == "12.1 us");
  CHECK(text_of(Seconds(0)) == "0 s");
}

TEST_CASE("what is printed can be read again") {
  for (const double si : {1.0, 1500.0, 2e6, 3e9, 5e13}) {
    CHECK(parse_bytes(text_of(Bytes(si))).value() == doctest::Approx(si).epsilon(1e-3));
    CHECK(parse_bandwidth(text_of(BytesPerSecond(si))).value() ==
          doctest::Approx(si).epsilon(1e-3));
  }
  for (const double si : {3e-6, 2e-3, 0.5, 20.0}) {
    CHECK(parse_seconds(text_of(Seconds(si))).value() == doctest::Approx(si).epsilon(1e-3));
  }
}

}  // namespace forerun
