#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "server/door/door.h"
#include "support/door.h"
#include "support/scale.h"
#include "support/tls_client.h"

// Not tests of speed: of whether one thing takes longer than another, however long that is, as a
// stranger would find out. They need a quiet machine, and MUSTER_TEST_SCALE=100 for 100,000 pairs.

namespace {

using muster::net::tls::Phase;
using muster::net::tls::Read;
using muster::net::tls::TlsContext;
using muster::net::tls::TlsSession;
using muster::server::Door;
using muster::test::other_key;
using muster::test::trainer_key;

constexpr int scale_min = 20;

double processor_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

struct Sample {
  double mean = 0;
  double variance = 0;
  double count = 0;
};

Sample describe(const std::vector<double>& values) {
  Sample sample;
  sample.count = static_cast<double>(values.size());
  for (const double value : values) sample.mean += value / sample.count;
  for (const double value : values) {
    sample.variance += (value - sample.mean) * (value - sample.mean) / (sample.count - 1);
  }
  return sample;
}

/// Welch's t of two samples, without the slowest twentieth of all, which an interrupt made slow.
double t_of(const std::array<std::vector<double>, 2>& took_ns) {
  std::vector<double> all = took_ns[0];
  all.insert(all.end(), took_ns[1].begin(), took_ns[1].end());
  const auto limit = all.begin() + static_cast<std::ptrdiff_t>(all.size() * 19 / 20);
  std::nth_element(all.begin(), limit, all.end());
  std::array<Sample, 2> samples;
  for (std::size_t which : {0U, 1U}) {
    std::vector<double> values;
    std::copy_if(took_ns[which].begin(), took_ns[which].end(), std::back_inserter(values),
                 [most = *limit](double value) { return value <= most; });
    samples[which] = describe(values);
  }
  const auto& [one, two] = samples;
  MESSAGE("means, ns: ", one.mean, " and ", two.mean, "; deviations: ", std::sqrt(one.variance),
          " and ", std::sqrt(two.variance));
  return (one.mean - two.mean) / std::sqrt(one.variance / one.count + two.variance / two.count);
}

/// Does one of two things at a time, by chance, and compares how long they have taken.
void check_alike(const std::function<double(std::size_t which)>& time) {
  if (muster::test::scaled(1) < scale_min) {
    MESSAGE("skipped: MUSTER_TEST_SCALE is below ", scale_min);
    return;
  }
  std::mt19937_64 dice(1);
  const int pairs = muster::test::scaled(1'000);
  std::array<std::vector<double>, 2> took_ns;
  for (int count = 0; count < 2 * pairs; ++count) {
    const std::size_t which = dice() & 1U;
    took_ns[which].push_back(time(which));
  }
  const double t = t_of(took_ns);
  MESSAGE("t = ", t, " of ", 2 * pairs);
  CHECK(std::abs(t) < 4.5);
}

std::shared_ptr<Door> open_door() {
  muster::server::DoorOptions options;
  options.text = "team/trainer " + trainer_key + " train-* all\n";
  return *Door::open(options);
}

std::string first_flight(const std::shared_ptr<const TlsContext>& context) {
  std::array<char, 1024> room;
  std::string flight;
  TlsSession::create(context)->read({}, room.data(), room.size(), flight);
  return flight;
}

/// A client that names a key and does not have it.
std::shared_ptr<const TlsContext> impostor(const std::string& named_key) {
  const std::string id = muster::test::id_of(named_key);
  return *TlsContext::client(id, muster::test::secret_of(other_key));
}

TEST_CASE("an id that nobody has takes as long as a wrong key") {
  const std::shared_ptr<Door> door = open_door();
  const std::array impostors = {impostor(muster::test::evaluator_key), impostor(trainer_key)};
  check_alike([&](std::size_t which) {
    // One flight may take longer than another one by what lies where.
    const std::string flight = first_flight(impostors[which]);
    const auto session = TlsSession::create(door->tls());
    std::array<char, 1024> room;
    std::string out;
    const double before_ns = processor_ns();
    const Read read = session->read(flight, room.data(), room.size(), out);
    const double took_ns = processor_ns() - before_ns;
    REQUIRE(read.phase == Phase::failed);
    return took_ns;
  });
}

TEST_CASE("a namespace without a right takes as long as any other, whether it is there or not") {
  const std::shared_ptr<Door> door = open_door();
  const muster::server::KeyShown shown{muster::test::id_of(trainer_key)};
  const std::array<std::string, 2> name_spaces = {"eval", "none"};
  check_alike([&](std::size_t which) {
    const double before_ns = processor_ns();
    const auto admitted = door->admit(shown, {muster::wire::Role::client, name_spaces[which]});
    const double took_ns = processor_ns() - before_ns;
    REQUIRE(std::holds_alternative<muster::auth::Refused>(admitted));
    return took_ns;
  });
}

}  // namespace
