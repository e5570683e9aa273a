#pragma once

#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
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
  /// A hello has come; the session that it wants to resume, or 0.
  void hello_comes(std::uint64_t session) { resuming_ = session; }
  /// Bytes have come on the connection.
  void heard(Connection connection);
  /// The server ends the connection; `closed` is that it has ended otherwise.
  void closes(Connection connection);
  void greeted(Connection connection, const wire::ClientHello& hello,
               const wire::ServerHello& answer);
  /// After a hello that was not refused: what it brings.
  void granted(Connection connection, const core::Hello& hello);
  /// Others are known: told before the event, and then what must hold after it.
  void regranted(const core::Regrant& event);
  void check_rights();
  void said_goodbye(Connection connection);
  void closed(Connection connection);
  void asked(Connection connection, const wire::Request& request);
  void acknowledged(Connection connection, const std::vector<std::uint64_t>& ids);
  void abandoned(Connection connection, const std::vector<std::uint64_t>& ids);
  void answered(const core::SendReply& reply);
  void told(const core::SendEvent& event);
  /// What must hold after each event. Of guests it knows no more than their counts.
  void check(const core::Counts& counts, const core::Counts& of_guests);
  /// Whether a request waits that should have been answered by now, a session is there that should
  /// be over, or somebody was not told of one that is.
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
    bool had_right = false;       ///< when it came first
    bool is_turned_away = false;  ///< its answer may not be kept
    bool must_fail = false;       ///< its epoch was over for it when it came
    std::uint64_t answer = 0;     ///< hash of it
    Instant due{};
    std::uint32_t rank = 0;         ///< of a join
    std::uint32_t size = 0;         ///< of the world, that a join or a regroup asks for
    std::uint32_t min_size = 0;     ///< of a regroup
    std::vector<std::string> keys;  ///< that it waits for, with their namespace
  };
  struct Session {
    std::uint64_t id = 0;
    std::string name_space;
    wire::Role role = wire::Role::client;
    core::Regrant::Grant grant;  ///< null: nobody was asked
    bool is_revoked = false;
    Connection connection = 0;
    std::unordered_map<std::uint64_t, Asked> asked;  ///< what is not acknowledged
    bool is_blank = true;                            ///< nothing was asked
    /// Where it may be a member without a handle, which leaves some time: nobody says when.
    std::set<std::string> may_have_left;
    // As the server's process has lived through it.
    Duration heard{};               ///< its last byte
    std::optional<Duration> ended;  ///< its connection
    Instant heard_at{};
  };
  struct Epoch {
    std::string group;
    std::uint32_t size = 0;
    std::map<std::uint32_t, std::uint64_t> sessions;  ///< by rank
    bool is_over = false;                             ///< its group has a newer one
    bool may_be_over = false;  ///< a regroup of it may have been done unheard
    bool is_broken = false;
    bool has_leavers = false;
    std::set<std::uint32_t> left;                           ///< or are about to
    std::set<std::uint32_t> gone;                           ///< those, and the lost
    std::map<std::uint64_t, std::set<std::uint32_t>> told;  ///< who of them, by session
    std::set<std::uint64_t> told_of_loss;                   ///< sessions
  };
  /// That a rank is gone: so long after, all have to know.
  struct Telling {
    Instant when;
    std::uint64_t epoch = 0;
    std::uint32_t rank = 0;
  };
  struct Place {
    std::uint64_t session = 0;
    std::uint64_t request = 0;
  };
  struct StreamKey {
    std::uint64_t epoch = 0;
    std::uint32_t source = 0;
    std::uint32_t destination = 0;
    std::uint64_t tag = 0;
    friend auto operator<=>(const StreamKey&, const StreamKey&) = default;
  };
  struct Stream {
    std::uint64_t sent = 0;  ///< objects that were accepted
    std::uint64_t wanted = 0;
    Place receiver;  ///< waits for the object `wanted`
  };
  /// Who joins or regroups now, in one group.
  struct Callers {
    std::map<std::uint32_t, std::set<std::uint64_t>> joins;                  ///< sessions by rank
    std::map<std::uint64_t, std::pair<std::uint32_t, std::uint32_t>> sizes;  ///< of their regroups
    std::uint32_t size = 0;                                                  ///< that joins ask for
    bool is_in_doubt = false;
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
  void may_form_unheard(const Asked& asked);
  void forget(Session& session, std::uint64_t request);
  void forget(std::uint64_t session);
  void end(Session& session);
  void check_repetition(Asked& asked, const core::SendReply& reply);
  void check_formed(const Session& session, const Asked& asked, const core::SendReply& reply);
  void check_error(const Session& session, const Asked& asked, const core::SendReply& reply);
  void check_round(const Session& session, const Asked& asked, std::uint16_t code);
  Asked* waiting(const Place& place);

  // Keys and objects: witness_waits.cpp.
  std::string key_in(const Session& session, std::string_view key) const;
  bool is_in_hand(const Session& session, std::uint64_t request) const;
  void note_answer(const Session& session, Asked& asked, std::uint64_t request, std::uint16_t code);
  void note_write(const Session& session, const wire::RequestBody& body);
  void write(const Session& session, std::string_view key, bool stays);
  void note_sent(const Session& session, const wire::Send& request);
  void begin_to_wait(const Session& session, Asked& asked);
  void check_writes();
  void check_written(const std::string& key, std::vector<Place>& places);
  bool are_there(const Asked& asked, const std::string* also) const;
  void check_stream(const Stream& stream);
  std::optional<std::uint32_t> rank_of(std::uint64_t epoch, std::uint64_t session) const;

  // Who may what: witness_rights.cpp.
  static bool has_right(const Session& session, wire::Operation operation);
  void check_right(const Session& session, const Asked& asked, std::uint16_t code);

  // What must form: witness_groups.cpp.
  void check_forming(const std::string& group);
  Callers callers_of(const std::string& group, const Epoch* epoch) const;
  bool may_live(const Epoch& epoch, std::uint32_t rank, std::uint64_t session) const;
  void check_closed(const Asked& asked, const Error& error);
  void check_too_small(const Asked& asked);

  // Who is gone: witness_lives.cpp.
  void check_lives();
  Duration due(const Session& session) const;
  void put_by(const Session& session);
  bool comes_back_blank(std::uint64_t session);
  void is_over(std::uint64_t session);
  void leaves(std::uint64_t session, std::uint64_t epoch);
  void leaves_all(const Session& session);
  static std::set<std::string> may_have_left(const Session& session);
  void is_gone(std::uint64_t epoch, std::uint32_t rank);
  void check_losses();
  bool goes_now(const Epoch& epoch, std::uint32_t rank) const;
  void check_all_lost_are_named(const Epoch& epoch, const Error& error);
  void check_nobody_waits(std::uint64_t epoch, std::uint32_t rank);
  void check_tellings();
  void check_telling(const Telling& telling);

  void check_counts(core::Counts counts, const core::Counts& of_guests);
  void check_limits(const core::Counts& counts);
  void problem(const std::string& what);

  Oracle& oracle_;
  core::Options options_;
  std::map<std::uint64_t, Session> sessions_;
  /// Those that ended blank with their connection, and until when each may come back.
  std::map<std::uint64_t, Duration> blanks_;
  std::unordered_map<Connection, Session*> connected_;
  std::map<std::uint64_t, Epoch> epochs_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, Round> rounds_;
  std::map<std::string, std::uint64_t> newest_;  ///< epoch of each group
  std::uint64_t sure_count_ = 0;                 ///< of open requests
  std::uint64_t unsure_count_ = 0;
  std::optional<Deadline> fresh_;  ///< of the request in hand
  const wire::Request* hand_ = nullptr;
  std::uint64_t hand_session_ = 0;  ///< whose it is
  std::uint64_t resuming_ = 0;      ///< by the hello in hand
  std::uint64_t session_count_ = 0;
  bool holds_nothing_ = false;
  Duration next_look_ = Duration::max();  ///< at sessions that may be over
  std::deque<Telling> tellings_;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> lost_;  ///< epochs and ranks, just now
  std::map<StreamKey, Stream> streams_;
  std::optional<StreamKey> touched_stream_;
  std::set<std::string> touched_groups_;
  std::unordered_map<std::string, std::vector<Place>> key_waits_;
  std::unordered_set<std::string> present_;   ///< keys that are there for sure
  std::unordered_set<std::string> doubtful_;  ///< somebody may have taken them, unheard
  std::vector<std::string> written_;          ///< by the request in hand
  std::set<std::string> taken_;               ///< the same
  std::priority_queue<Deadline, std::vector<Deadline>, std::greater<>> deadlines_;
};

}  // namespace muster::sim
