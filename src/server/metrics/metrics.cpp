#include "server/metrics/metrics.h"

#include <utility>

#include "server/metrics/page.h"
#include "wire/hello.h"
#include "wire/operation_table.h"

namespace muster::server {
namespace {

constexpr std::string_view program_version = MUSTER_VERSION;

using enum MetricType;

/// A metric with one sample.
template <class Value>
struct Single {
  MetricFamily family;
  Value (*of)(const Figures& figures);
};
using Number = Single<std::uint64_t>;
using Time = Single<Duration>;

constexpr auto of_sessions = std::to_array<Number>({
    {{gauge, "muster_sessions", "", "Sessions, also those without a connection."},
     [](const Figures& all) { return all.engine.snapshot.core.sessions; }},
    {{gauge, "muster_sessions_limit", "", "The option sessions_max."},
     [](const Figures& all) { return all.sessions_max; }},
    {{gauge, "muster_observers", "", "Of the sessions, those that only look."},
     [](const Figures& all) { return all.engine.snapshot.core.observers; }},
    {{counter, "muster_sessions_begun", "", "Sessions that have begun."},
     [](const Figures& all) { return all.engine.snapshot.sessions_begun; }},
    {{gauge, "muster_namespaces", "", "Namespaces."},
     [](const Figures& all) { return all.engine.snapshot.name_spaces; }},
    {{gauge, "muster_namespaces_limit", "", "The option namespaces_max."},
     [](const Figures& all) { return all.name_spaces_max; }},
});

constexpr auto of_connections = std::to_array<Number>({
    {{gauge, "muster_connections", "", "Connections that have a session."},
     [](const Figures& all) { return all.engine.snapshot.core.connections; }},
    {{gauge, "muster_connections_limit", "", "The option connections_max."},
     [](const Figures& all) { return all.connections_max; }},
    {{gauge, "muster_newcomers", "", "Connections that have not said hello yet."},
     [](const Figures& all) { return all.engine.snapshot.rim.newcomers; }},
    {{gauge, "muster_newcomers_limit", "", "The option hello_connections_max."},
     [](const Figures& all) { return all.hello_connections_max; }},
    {{counter, "muster_connections_accepted", "", "Connections that were accepted."},
     [](const Figures& all) { return all.engine.snapshot.rim.accepted; }},
    {{counter, "muster_connections_refused", "",
      "Connections that were refused: the server was full, or no hello came that it takes."},
     [](const Figures& all) { return all.engine.snapshot.rim.refused; }},
    {{counter, "muster_tcpstore_clients_refused", "",
      "Of them, clients of TCPStore at a port that is not for them."},
     [](const Figures& all) { return all.engine.snapshot.rim.tcpstore_refused; }},
});

constexpr auto of_memory = std::to_array<Number>({
    {{gauge, "muster_memory_used_bytes", "bytes", "Memory that is charged, of all kinds."},
     [](const Figures& all) { return all.engine.snapshot.core.memory_bytes; }},
    {{gauge, "muster_memory_limit_bytes", "bytes",
      "The option memory_bytes_max, which values cannot pass."},
     [](const Figures& all) { return all.memory_bytes_max; }},
    {{gauge, "muster_memory_reserve_used_bytes", "bytes",
      "Of the memory in use, what is above the limit."},
     [](const Figures& all) { return all.engine.memory_reserve_used_bytes; }},
    {{gauge, "muster_memory_reserve_limit_bytes", "bytes",
      "What may be in use above the limit, for groups, parked requests and replies."},
     [](const Figures& all) { return all.engine.memory_reserve_bytes; }},
    {{gauge, "muster_memory_replies_bytes", "bytes",
      "Of the memory in use, replies that were made for one reader."},
     [](const Figures& all) { return all.engine.reply_bytes; }},
    {{gauge, "muster_memory_kept_bytes", "bytes",
      "Memory that is free, and not given back to the system."},
     [](const Figures& all) { return all.engine.kept_bytes; }},
    {{gauge, "muster_unsent_bytes", "bytes", "What clients have not taken yet."},
     [](const Figures& all) { return all.engine.snapshot.rim.unsent_bytes; }},
    {{gauge, "muster_history_bytes", "bytes", "What is kept of the history of groups."},
     [](const Figures& all) { return all.engine.snapshot.history_bytes; }},
    {{gauge, "muster_history_limit_bytes", "bytes", "What the history may take."},
     [](const Figures& all) { return all.engine.history_bytes_max; }},
});

constexpr auto of_keys_and_waits = std::to_array<Number>({
    {{gauge, "muster_keys", "", "Keys of all namespaces."},
     [](const Figures& all) { return all.engine.snapshot.core.keys; }},
    {{gauge, "muster_objects", "", "Objects of streams and rounds that are kept."},
     [](const Figures& all) { return all.engine.snapshot.core.objects; }},
    {{gauge, "muster_streams", "", "Streams between ranks."},
     [](const Figures& all) { return all.engine.snapshot.core.streams; }},
    {{gauge, "muster_cached_results", "", "Answers that are kept until clients acknowledge them."},
     [](const Figures& all) { return all.engine.snapshot.core.cached_results; }},
    {{gauge, "muster_timers", "", "Timers that are armed."},
     [](const Figures& all) { return all.engine.snapshot.core.timers; }},
    {{gauge, "muster_waits", "", "Requests that wait."},
     [](const Figures& all) { return all.engine.snapshot.core.waits; }},
});

constexpr auto of_groups = std::to_array<Number>({
    {{gauge, "muster_epochs", "", "Epochs, also those that are over and still referred to."},
     [](const Figures& all) { return all.engine.snapshot.core.epochs; }},
    {{counter, "muster_epochs_formed", "", "Epochs that have formed."},
     [](const Figures& all) { return all.engine.epochs_formed; }},
    {{counter, "muster_epochs_regrouped", "", "Of them, those that were formed by a regroup."},
     [](const Figures& all) { return all.engine.tallies.epochs_regrouped; }},
    {{counter, "muster_epochs_broken", "", "Epochs that were broken by the loss of a rank."},
     [](const Figures& all) { return all.engine.tallies.epochs_broken; }},
    {{gauge, "muster_rounds", "", "Rounds that not all ranks have acknowledged yet."},
     [](const Figures& all) { return all.engine.snapshot.core.rounds; }},
    {{gauge, "muster_rounds_undecided", "", "Of them, those whose outcome is not known yet."},
     [](const Figures& all) { return all.engine.rounds_undecided; }},
});

constexpr Time oldest_wait{
    {gauge, "muster_oldest_wait_seconds", "seconds",
     "How long the oldest request that waits has waited, to a quarter of a second; 0: none waits."},
    [](const Figures& all) { return all.engine.oldest_wait; }};
constexpr Time oldest_round{
    {gauge, "muster_oldest_round_seconds", "seconds",
     "How long ago the oldest undecided round was called first, to a quarter of a second; 0: there "
     "is none."},
    [](const Figures& all) { return all.engine.oldest_round; }};
constexpr Time oldest_forming{
    {gauge, "muster_oldest_forming_seconds", "seconds",
     "How long the oldest group that forms has waited for its ranks; 0: there is none."},
    [](const Figures& all) { return all.engine.oldest_forming; }};
constexpr Time oldest_broken{
    {gauge, "muster_oldest_broken_seconds", "seconds",
     "How long ago the oldest broken group lost its first rank; 0: there is none."},
    [](const Figures& all) { return all.engine.oldest_broken; }};
constexpr Number draining{
    {gauge, "muster_draining", "", "1 while the server is being drained: no session begins."},
    [](const Figures& all) { return std::uint64_t{all.engine.is_draining}; }};
constexpr Time paused{{counter, "muster_paused_seconds", "seconds",
                       "Time in which the server did not run, beyond gap_max at once."},
                      [](const Figures& all) { return all.engine.paused; }};
constexpr Time longest_turn{
    {gauge, "muster_longest_turn_seconds", "seconds", "The longest turn since the start."},
    [](const Figures& all) {
      return Duration(static_cast<Duration::rep>(all.engine.snapshot.rim.turn_us_max));
    }};
constexpr Number long_turns{
    {counter, "muster_long_turns", "", "Turns of more than 100 ms, in which others waited."},
    [](const Figures& all) { return all.engine.snapshot.rim.long_turns; }};

/// Writes the metrics, in the order of docs/metrics.md.
class MetricsWriter {
 public:
  MetricsWriter(const Figures& figures, MetricsFormat format) : figures_(figures), page_(format) {}

  std::string text() && {
    add_start();
    add_operations();
    add_all(of_sessions);
    add_ends_of_sessions();
    add_all(of_connections);
    add_ends_of_connections();
    add_states_of_connections();
    add_all(of_memory);
    add_refusals();
    add_all(of_keys_and_waits);
    add(oldest_wait);
    add_waits();
    add_states_of_groups();
    add(oldest_forming);
    add(oldest_broken);
    add_all(of_groups);
    add(oldest_round);
    add_losses();
    add_turns();
    add_log();
    add_expiry();
    return std::move(page_).text();
  }

 private:
  void add(const auto& single) {
    page_.begin(single.family);
    page_.sample({}, single.of(figures_));
  }
  void add_all(const auto& singles) {
    for (const auto& single : singles) add(single);
  }

  void add_start() {
    page_.begin({info, "muster_build", "", "The version of the server and of its protocol."});
    const std::string protocol = std::to_string(wire::protocol_version);
    page_.sample({{"version", program_version}, {"protocol", protocol}}, std::uint64_t{1});
    add_time("muster_start_time_seconds", "When the server was started, in seconds since 1970.",
             figures_.started);
    add_time("muster_figures_time_seconds", "When all this was so, in seconds since 1970.",
             figures_.taken);
    add(draining);
    add(paused);
  }

  void add_time(std::string_view name, std::string_view help,
                std::chrono::system_clock::time_point time) {
    page_.begin({gauge, name, "seconds", help});
    page_.sample({}, std::chrono::duration_cast<Duration>(time.time_since_epoch()));
  }

  void add_operations() {
    page_.begin({counter, "muster_operations", "", "Requests that have ended, and how."});
    const core::Outcomes& outcomes = figures_.engine.tallies.outcomes;
    for (std::size_t operation = 0; operation < wire::operations_count; ++operation) {
      for (std::size_t outcome = 0; outcome < core::outcomes_count; ++outcome) {
        const std::uint64_t count = outcomes.of(operation, outcome);
        if (count == 0 && outcome != 0) continue;
        page_.sample({{"operation", wire::operation_facts[operation].name},
                      {"outcome", core::outcome_name(outcome)}},
                     count);
      }
    }
    page_.begin({counter, "muster_tcpstore_requests", "",
                 "Requests of clients of TCPStore that are no operations of Muster's own."});
    add_by("request", core::guest_request_names, figures_.engine.guest_requests);
  }

  /// A sample of each name.
  void add_by(std::string_view label, const auto& names, const auto& counts) {
    for (std::size_t index = 0; index < names.size(); ++index) {
      page_.sample({{label, names[index]}}, counts[index]);
    }
  }

  void add_ends_of_sessions() {
    page_.begin({counter, "muster_sessions_ended", "", "Sessions that have ended, and how."});
    add_by_cause(figures_.engine.tallies.sessions_ended, 0);
  }

  void add_losses() {
    page_.begin({counter, "muster_ranks_lost", "", "Ranks that groups have lost, and how."});
    add_by_cause(figures_.engine.tallies.ranks_lost, 1);
  }

  void add_by_cause(const core::LossCounts& counts, std::size_t first) {
    for (std::size_t index = first; index < counts.size(); ++index) {
      const auto cause = static_cast<LossCause>(index);
      page_.sample({{"cause", cause == LossCause::none ? "in_order" : name_of(cause)}},
                   counts[index]);
    }
  }

  void add_ends_of_connections() {
    const core::RimCounts& rim = figures_.engine.snapshot.rim;
    page_.begin({counter, "muster_connections_ended", "", "Connections that have ended, and why."});
    page_.sample({{"why", "peer"}}, rim.ended);
    page_.sample({{"why", "network"}}, rim.broken);
    page_.sample({{"why", "breach"}}, rim.breaches);
    page_.sample({{"why", "too_slow"}}, rim.too_slow);
  }

  void add_states_of_connections() {
    const core::RimCounts& rim = figures_.engine.snapshot.rim;
    page_.begin({gauge, "muster_connections_delayed", "",
                 "Connections that something waits for, and what."});
    page_.sample({{"state", "held"}}, rim.held);
    page_.sample({{"state", "postponed"}}, rim.postponed);
    page_.sample({{"state", "waiting"}}, rim.waiting);
    page_.sample({{"state", "slow"}}, rim.slow);
    page_.sample({{"state", "leaving"}}, rim.leaving);
  }

  void add_refusals() {
    page_.begin({counter, "muster_refusals", "",
                 "What was refused because a limit was reached, and which."});
    for (std::size_t limit = 0; limit < core::limits_count; ++limit) {
      page_.sample({{"limit", core::limit_names[limit]}},
                   figures_.engine.tallies.refusals.of(limit));
    }
  }

  void add_waits() {
    page_.begin({histogram, "muster_wait_seconds", "seconds",
                 "How long requests have waited that were answered later, and for what."});
    for (std::size_t kind = 0; kind < core::wait_kind_names.size(); ++kind) {
      page_.samples({{"kind", core::wait_kind_names[kind]}}, figures_.engine.tallies.waits[kind],
                    core::wait_bounds);
    }
  }

  void add_states_of_groups() {
    const core::GroupStates& states = figures_.engine.group_states;
    page_.begin({gauge, "muster_groups", "", "Groups of all namespaces."});
    page_.sample({{"state", "forming"}}, figures_.engine.snapshot.core.groups - states.formed);
    page_.sample({{"state", "formed"}}, states.formed - states.broken);
    page_.sample({{"state", "broken"}}, states.broken);
  }

  void add_turns() {
    page_.begin({histogram, "muster_turn_seconds", "seconds",
                 "How long turns of the thread that serves have taken."});
    page_.samples({}, figures_.turns, net::turn_bounds);
    add(long_turns);
    add(longest_turn);
  }

  void add_log() {
    page_.begin({counter, "muster_log_lines_dropped", "", "Lines that the log lacks, and why."});
    page_.sample({{"why", "too_many"}}, figures_.log_lines_left_out);
    page_.sample({{"why", "not_taken"}}, figures_.log_lines_dropped);
  }

  void add_expiry() {
    page_.begin({gauge, "muster_certificate_expiry_seconds", "seconds",
                 "When a certificate expires, in seconds since 1970: the first one of its kind."});
    add_if_any({{"kind", "server"}}, figures_.server_certificate_expiry);
    add_if_any({{"kind", "client_authority"}}, figures_.authority_certificate_expiry);
    page_.begin({gauge, "muster_credential_expiry_seconds", "seconds",
                 "When the next credential line expires, in seconds since 1970."});
    add_if_any({}, figures_.credential_expiry);
  }

  void add_if_any(MetricLabels labels, std::optional<std::chrono::seconds> time) {
    if (time) page_.sample(labels, static_cast<std::uint64_t>(time->count()));
  }

  const Figures& figures_;
  MetricsPage page_;
};

}  // namespace

std::string metrics_text(const Figures& figures, MetricsFormat format) {
  return MetricsWriter(figures, format).text();
}

}  // namespace muster::server
