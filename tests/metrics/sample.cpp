#include <array>
#include <bit>
#include <cstdio>
#include <string>
#include <string_view>

#include "server/metrics/metrics.h"

// Prints the metrics of a server of which every number is another one, as far as that can be.
//
// metrics_sample FORMAT   prometheus, openmetrics or empty: in the older format, of a server that
//                         nothing has happened to

namespace {

using namespace muster;

/// 1001, 1002, ...
class NextNumber {
 public:
  std::uint64_t operator()() { return ++last_; }
  void fill(auto& numbers) {
    for (auto& number : numbers) number = (*this)();
  }

 private:
  std::uint64_t last_ = 1000;
};

void fill(core::Snapshot& snapshot, NextNumber& next) {
  std::array<std::uint64_t, sizeof(core::Snapshot) / sizeof(std::uint64_t)> numbers{};
  next.fill(numbers);
  snapshot = std::bit_cast<core::Snapshot>(numbers);
}

void fill(core::Tallies& tallies, NextNumber& next) {
  const auto count_times = [&tallies](wire::Operation operation, ErrorCode code, int times) {
    for (int time = 0; time < times; ++time) {
      tallies.outcomes.count(operation, static_cast<std::uint16_t>(code));
    }
  };
  count_times(wire::operation<wire::Set>, ErrorCode{}, 3);
  count_times(wire::operation<wire::Get>, ErrorCode{}, 2);
  count_times(wire::operation<wire::Get>, ErrorCode::timed_out, 1);
  tallies.outcomes.count_abandoned(wire::operation<wire::Take>);
  for (int index = 0; index < 40; ++index) {
    tallies.count_wait(wire::operation<wire::Get>, std::chrono::milliseconds(index * index));
    tallies.count_wait(wire::operation<wire::Join>, std::chrono::seconds(index * index));
  }
  tallies.count_wait(wire::operation<wire::CollectiveCall>, std::chrono::microseconds(1'234'567));
  for (std::size_t limit = 0; limit < core::limits_count; ++limit) {
    for (std::size_t time = 0; time <= limit; ++time) {
      tallies.refusals.count(static_cast<core::Limit>(limit));
    }
  }
  next.fill(tallies.sessions_ended);
  next.fill(tallies.ranks_lost);
  tallies.epochs_regrouped = next();
  tallies.epochs_broken = next();
}

server::Figures busy() {
  NextNumber next;
  server::Figures all;
  fill(all.engine.snapshot, next);
  fill(all.engine.tallies, next);
  next.fill(all.engine.guest_requests);
  all.engine.snapshot.core.groups = 60;
  all.engine.group_states = {50, 20};
  all.engine.epochs_formed = next();
  all.engine.rounds_undecided = next();
  all.engine.oldest_round = Duration(std::chrono::milliseconds(1750));
  all.engine.oldest_wait = Duration(std::chrono::seconds(86400));
  all.engine.oldest_forming = Duration(std::chrono::milliseconds(90'500));
  all.engine.oldest_broken = Duration(std::chrono::minutes(20));
  all.engine.is_draining = true;
  all.engine.paused = Duration(std::chrono::microseconds(2'000'001));
  all.engine.memory_reserve_used_bytes = next();
  all.engine.memory_reserve_bytes = next();
  all.engine.reply_bytes = next();
  all.engine.kept_bytes = next();
  all.engine.history_bytes_max = next();
  for (int index = 0; index < 60; ++index) {
    all.turns.add(std::chrono::microseconds(index * index * index * 20));
  }
  all.log_lines_left_out = next();
  all.log_lines_dropped = next();
  all.started = std::chrono::system_clock::time_point(std::chrono::milliseconds(1'700'000'000'250));
  all.taken = all.started + std::chrono::hours(1);
  all.server_certificate_expiry = std::chrono::seconds(1'800'000'000);
  all.authority_certificate_expiry = std::chrono::seconds(1'900'000'000);
  all.credential_expiry = std::chrono::seconds(1'850'000'000);
  all.memory_bytes_max = next();
  all.connections_max = next();
  all.hello_connections_max = next();
  all.sessions_max = next();
  all.name_spaces_max = next();
  return all;
}

}  // namespace

int main(int count, char** words) {
  const std::string_view format = count == 2 ? words[1] : "";
  const server::Figures figures = format == "empty" ? server::Figures() : busy();
  const std::string text = server::metrics_text(
      figures, format == "openmetrics" ? MetricsFormat::openmetrics : MetricsFormat::prometheus);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}
