#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <queue>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/engine.h"
#include "scheduler.h"

namespace muster::sim {

class Oracle;

/// Stands beside the server: hears what it is asked and what it says, in that order and before the
/// network does anything to it, and checks it there and then. Knows one start of the server.
class Witness {
 public:
  using Connection = core::ConnectionId;

  Witness(Oracle& oracle, core::Options options);

  void started();
  void greeted(Connection connection, const wire::ClientHello& hello,
               const wire::ServerHello& answer);
  void said_goodbye(Connection connection);
  void closed(Connection connection);
  void asked(Connection connection, const wire::Request& request);
  void acknowledged(Connection connection, const std::vector<std::uint64_t>& ids);
  void abandoned(Connection connection, const std::vector<std::uint64_t>& ids);
  void answered(const core::SendReply& reply);
  void told(const core::SendEvent& event);
  /// What must hold after each event.
  void check(const core::Counts& counts);
  /// Whether a request waits that should have been answered by now.
  void check_deadlines();

 private:
  struct Asked {
    wire::Operation operation{};
    std::string group;  ///< with its namespace; of a join
    std::uint64_t epoch = 0;
    std::uint64_t round = 0;
    bool is_open = true;  ///< not answered yet, as far as is known
    bool is_sure = true;  ///< of that: asked, or repeated, on the connection that stands
    bool is_owed = true;  ///< an answer
    bool is_repeated = false;
    bool must_fail = false;    ///< its epoch was over for it when it came
    std::uint64_t answer = 0;  ///< hash of it
    Instant due{};
  };
  struct Session {
    std::uint64_t id = 0;
    std::string name_space;
    Connection connection = 0;
    std::unordered_map<std::uint64_t, Asked> asked;  ///< what is not acknowledged
  };
  struct Epoch {
    std::string group;
    std::uint32_t size = 0;
    std::map<std::uint32_t, std::uint64_t> sessions;  ///< by rank
    bool is_over = false;                             ///< its group has a newer one
    bool is_broken = false;
    bool has_leavers = false;
  };
  struct Round {
    std::vector<std::uint64_t> callers;  ///< sessions
    std::optional<std::uint16_t> outcome;
    bool is_rooted = false;
  };
  struct Deadline {
    Instant when;
    std::uint64_t session = 0;
    std::uint64_t request = 0;
    friend bool operator>(const Deadline& one, const Deadline& other) {
      return one.when > other.when;
    }
  };

  Session* session_on(Connection connection);
  Asked describe(const Session& session, const wire::Request& request);
  void call(const Session& session, const wire::CollectiveCall& request, Asked& asked);
  void close(Asked& asked);
  void forget(Session& session, std::uint64_t request);
  void forget(std::uint64_t session);
  void end(Session& session);
  void check_repetition(Asked& asked, const core::SendReply& reply);
  void check_formed(const Session& session, const Asked& asked, const core::SendReply& reply);
  void check_round(const Session& session, const Asked& asked, std::uint16_t code);
  void check_counts(const core::Counts& counts);
  void check_limits(const core::Counts& counts);
  void problem(const std::string& what);

  Oracle& oracle_;
  core::Options options_;
  std::map<std::uint64_t, Session> sessions_;
  std::unordered_map<Connection, Session*> connected_;
  std::map<std::uint64_t, Epoch> epochs_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, Round> rounds_;
  std::map<std::string, std::uint64_t> newest_;  ///< epoch of each group
  std::uint64_t sure_count_ = 0;                 ///< of open requests
  std::uint64_t unsure_count_ = 0;
  std::optional<Deadline> fresh_;  ///< of the request in hand
  std::priority_queue<Deadline, std::vector<Deadline>, std::greater<>> deadlines_;
};

}  // namespace muster::sim
