#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <queue>
#include <string>
#include <vector>

#include "client/protocol/fate.h"
#include "group_model.h"
#include "key_model.h"
#include "life.h"
#include "muster/error.h"
#include "queue_model.h"
#include "scheduler.h"
#include "trace.h"
#include "wire/hello.h"
#include "wire/operation_table.h"
#include "wire/reply.h"

namespace muster::sim {

/// One call of one process.
struct Ask {
  std::uint64_t client = 0;
  wire::Operation operation{};
  std::string what;   ///< for people
  std::string group;  ///< with its namespace
  std::uint64_t epoch = 0;
  std::uint64_t round = 0;
  Instant begun{};
  Duration timeout{};
  std::uint32_t rank = 0;   ///< that a join asks for
  std::uint32_t size = 0;   ///< of the world, that a join or a regroup asks for
  bool is_standby = false;  ///< a join that waits also where the group is whole
  bool is_cancelled = false;
  std::uint64_t incarnation = 0;  ///< of the server, when it was begun; 0: none was known
};

/// Knows all that is done and all that goes wrong, and nothing of the product's code: it judges
/// every answer by the contract, docs/semantics.md.
class Oracle {
 public:
  struct Terms {
    wire::ServerLimits limits;
    double drift = 0;  ///< each clock runs at most so much too fast or too slow
    Duration delay_max{};
    bool has_small_limits = false;
    bool has_expiration = false;
  };

  Oracle(Scheduler& scheduler, Trace& trace, Terms terms);

  // What goes wrong.
  Life& born(Life life);
  void died(std::uint64_t client);
  void disturbed(std::uint64_t client, Instant from, Instant until);
  void server_disturbed(Instant from, Instant until);
  void server_stops(Instant until);
  void server_died();
  void server_started();
  /// The server knows its credentials no more, until then.
  void revoked(std::uint64_t client, Instant until);
  /// The server has ended its session, as it says, and others hear of it at once.
  void must_be_known_gone(std::uint64_t client);

  // What the server's process sees.
  void heard(std::uint64_t client);
  void lost_connection(std::uint64_t client);

  // Calls.
  std::uint64_t begun(Ask ask);
  /// `error` is null after success. `incarnation` is that of the client's session now.
  Ask ended(std::uint64_t number, const Error* error, client::protocol::Fate fate,
            std::uint64_t incarnation);
  void cancels(std::uint64_t number);
  bool is_pending(std::uint64_t number) const { return pending_.count(number) != 0; }
  void told(std::uint64_t client, const Error& error, std::uint64_t incarnation);
  /// What a member is said to be, to whom, and when that one has asked.
  void check_entry(std::uint64_t client, const std::string& group, const wire::MemberEntry& entry,
                   Instant asked);
  /// What is told of a group's past, to whom, and by which server.
  void check_record(std::uint64_t client, const wire::HistoryRecord& record,
                    std::uint64_t incarnation);
  /// Somebody regroups with those who come.
  void may_fence();

  /// R1, after each event: whether a call has outlived its deadline.
  void check_deadlines();
  /// Looks for what else should have happened by now.
  void look();
  void problem(const std::string& what);
  const std::vector<std::string>& problems() const { return problems_; }

  Life& life(std::uint64_t client) { return lives_[client]; }
  /// Of a process in the client's namespace; null: it never was there.
  const Life* life_of(const ProcessId& process, std::uint64_t client) const;
  const std::deque<Life>& lives() const { return lives_; }
  const Terms& terms() const { return terms_; }
  Instant now() const { return scheduler_.now(); }
  Duration running() const;
  /// Whether the server knew at the time `then` that the process had died.
  bool is_surely_lost(const Life& life, Instant then) const;
  /// How a group is named that a client speaks of.
  std::string group_id(std::uint64_t client, const std::string& group) const;
  bool server_is_calm(Instant from, Instant until) const;
  Duration longer(Duration duration) const;   ///< by what clocks may differ
  Duration shorter(Duration duration) const;  ///< the same

  KeyModel keys;
  QueueModel queues;
  GroupModel groups;
  std::uint64_t calls_ended_count = 0;

 private:
  static bool takes_part_in_regroup(wire::Operation operation);
  bool is_allowed(const Ask& ask, const Error& error);
  bool may_time_out(const Ask& ask, const Error& error);
  bool may_be_refused(const Ask& ask, const Error& error) const;
  void check_elapsed(const Ask& ask, const Error& error);
  void check_reports(std::uint64_t client, const Error& error,
                     std::size_t in_full_max = wire::ranks_in_full_max);
  void check_ranges(const Error& error, std::size_t in_full_max);
  void check_places(const Error& error, std::uint64_t incarnation, std::uint64_t client);
  void check_missing(const Ask& ask, const Error& error);
  void check_callers(const Ask& ask, const Error& error);
  bool surely_waited(const Ask& other, const Ask& late) const;
  void check_loss(std::uint64_t client, const Error& error);
  bool is_cause(LossCause cause, const Life& life, const std::string& group,
                const RankReport& report) const;
  bool may_be_in_use(const Ask& ask, const Error& error);
  Duration silence_of(const Life& life) const;
  Duration absence_of(const Life& life) const;
  bool is_lost(const Life& life, const std::string& group, std::uint32_t rank) const;
  void check_left(std::uint64_t client, const Error& error, bool of_regroup = false);
  void look_at(const Ask& ask);
  void look_for_the_server(const Ask& ask);
  void look_for_those_who_wait_for(std::uint64_t client, Instant since);
  void look_after_restart(Instant since);
  void look_at_end(const Ask& ask);
  void look_for_the_dead(const Ask& ask);

  Scheduler& scheduler_;
  Trace& trace_;
  Terms terms_;
  std::deque<Life> lives_;
  std::uint64_t last_ask_ = 0;
  std::map<std::uint64_t, Ask> pending_;
  using Latest = std::pair<Instant, std::uint64_t>;  ///< end of a call
  std::priority_queue<Latest, std::vector<Latest>, std::greater<>> latest_;
  std::vector<std::pair<Instant, Instant>> server_disturbances_;
  Duration paused_{0};
  Instant paused_until_{};
  Instant paused_from_{};
  std::uint64_t restarts_ = 0;
  Instant died_at_{};
  bool is_down_ = false;
  std::vector<std::string> problems_;
};

}  // namespace muster::sim
