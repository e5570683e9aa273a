#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "any_request.h"
#include "fuzz.h"
#include "unit/core/engine_driver.h"
#include "wire/error_body.h"

// Clients that keep no rules do anything to the engine: any request with any fields, any
// repetition, resumes of their own and others' sessions, acknowledgements of anything; time passes,
// also without the server. What holds whatever they do: one reply per request and in time, which
// can be decoded; no reply that nobody waits for; counts that agree; nothing left when all are
// gone. In every second play some of them prove who they are, and what they may changes: then
// nothing is done without its right, and nobody resumes a session of another identity.

using namespace muster;
using namespace std::chrono_literals;
using fuzz::require;

namespace {

constexpr std::uint8_t with_identities = 16;  ///< a bit of the first byte

core::Options options(std::uint8_t choice) {
  core::Options options;
  options.memory_bytes_max = (choice & 1) != 0 ? 30'000 : 1U << 20;
  options.namespace_memory_bytes_max = (choice & 2) != 0 ? 20'000 : 1U << 20;
  options.limits.cached_results_max = (choice & 4) != 0 ? 3 : 64;
  options.open_rounds_max = 3;
  options.sessions_max = 6;
  options.groups_per_namespace_max = 3;
  options.list_slots_per_page = 2;
  options.work_per_event_max = 3;
  options.limits.key_bytes_max = 100;
  options.limits.value_bytes_max = 4000;
  options.limits.round_bytes_max = 6000;
  options.limits.keys_per_operation_max = 4;
  options.limits.parked_waits_max = (choice & 8) != 0 ? 2 : 16;
  options.limits.world_size_max = 4;
  options.limits.session_timeout = 5s;
  options.limits.grace = 1s;
  return options;
}

template <class Reply>
bool decodes(std::string_view body) {
  return wire::decode_body<Reply>(body).has_value();
}

/// By the indices of the table of operations.
constexpr auto reply_decodes = std::apply(
    []<class... Requests, class... Replies>(const wire::Row<Requests, Replies>&...) {
      return std::array{&decodes<Replies>...};
    },
    wire::operation_table);

bool is_reply_to(wire::Operation operation, std::string_view body) {
  const auto index = wire::find_operation(static_cast<std::uint16_t>(operation));
  return index && reply_decodes[*index](body);
}

using Grant = core::Regrant::Grant;

/// A version of somebody's line.
Grant any_grant(fuzz::Input& input, const auth::Identity& identity) {
  constexpr std::array<const char*, 4> patterns = {"*", "*", "\"\"", "n"};
  auth::Grant grant;
  grant.identity = identity;
  grant.namespaces = *auth::NamespacePatterns::read(patterns[input.below(patterns.size())]);
  const std::uint8_t rights = input.byte();
  for (const wire::Right right : auth::Rights::of_job) {
    if ((rights >> static_cast<int>(right) & 1) == 0) grant.rights.add(right);
  }
  if (rights == 255) grant.rights.add(wire::Right::admin);
  const std::uint8_t limits = input.byte();
  if ((limits & 1) != 0) grant.limits.sessions = 1;
  if ((limits & 2) != 0) grant.limits.groups = 1;
  if ((limits & 4) != 0) grant.limits.requests_per_second = 1;
  if ((limits & 8) != 0) grant.limits.memory_bytes = 4000;
  return std::make_shared<const auth::Grant>(std::move(grant));
}

struct Session {
  std::uint64_t id = 0;
  wire::ResumeToken token;
  std::string name_space;
  wire::Role role{};
  Grant grant;  ///< null: nobody asked who it is
  core::ConnectionId connection = 0;
  std::vector<wire::Request> requests;  ///< all that were sent

  bool has(wire::Right right) const {
    return wire::has_right(role, right) && (grant == nullptr || grant->rights.has(right));
  }
};

struct Expected {
  std::uint64_t session = 0;
  bool is_owed = true;  ///< it was not abandoned, and its connection stands
  wire::Operation operation{};
  core::Instant deadline;
};

class Play {
 public:
  explicit Play(fuzz::Input& input) : Play(input, input.byte()) {}

  void step() {
    const std::size_t kind = input_.below(24);
    if (kind < 3 || sessions_.empty()) return connect();
    Session& session = sessions_[input_.below(sessions_.size())];
    if (kind < 5) return resume(session);
    if (kind < 8) return pass();
    if (session.connection == 0) return;
    switch (kind) {
      case 8: return repeat(session);
      case 9: return acknowledge(session);
      case 10: return abandon(session);
      case 11: return apply(core::Heartbeat{session.connection, input_.wild(), nullptr});
      case 12: return disconnect(session);
      case 13: return apply(core::Goodbye{session.connection});
      case 14: return has_identities_ ? regrant() : ask(session);
      default: return ask(session);
    }
  }

  void finish() {
    wait(12s);  // no timeout, time to live or session lasts longer
    for (const auto& [id, expected] : expected_) {
      require(!expected.is_owed || expected.deadline + 2s > driver_.now,
              "every request is answered");
    }
    for (const Session& session : std::vector<Session>(sessions_)) {
      if (session.connection != 0) apply(core::Goodbye{session.connection});
    }
    wait(8s);
    for (const std::string_view name_space : fuzz::name_spaces) {
      const core::ConnectionId cleaner =
          driver_.connect(std::string(name_space), wire::Role::supervisor);
      driver_.ask(cleaner, wire::Remove{{fuzz::keys.begin(), fuzz::keys.end()}});
      driver_.apply(core::Goodbye{cleaner});
      driver_.effects.clear();
    }
    if (driver_.engine.counts().queues != 0) drop_queues();
    wait(12s);
    const core::Counts counts = driver_.engine.counts();
    require(counts.sessions == 0 && counts.connections == 0, "no session is left");
    require(counts.keys == 0 && counts.queues == 0, "no key is left");
    require(counts.groups == 0 && counts.epochs == 0, "no group is left");
    require(counts.rounds == 0 && counts.streams == 0 && counts.objects == 0, "no object is left");
    require(counts.waits == 0 && counts.cached_results == 0, "no request is left");
    require(counts.timers == 0, "no timer is left");
    require(counts.memory_bytes == 0, "no memory is charged");
  }

 private:
  Play(fuzz::Input& input, std::uint8_t choice)
      : input_(input), driver_(options(choice)), has_identities_((choice & with_identities) != 0) {
    for (std::size_t who = 0; has_identities_ && who < grants_.size(); ++who) {
      grants_[who] = any_grant(input_, identities[who]);
    }
  }

  void apply(const core::Event& event) {
    driver_.apply(event);
    look();
  }

  /// With the namespaces, in which nobody is any more.
  void drop_queues() {
    const core::ConnectionId cleaner = driver_.connect("cleaner", wire::Role::supervisor);
    for (const std::string_view name_space : fuzz::name_spaces) {
      driver_.ask(cleaner, wire::DropNameSpace{name_space});
    }
    driver_.apply(core::Goodbye{cleaner});
    driver_.effects.clear();
  }

  void hello(core::Hello event) {
    event.connection = ++last_connection_;
    event.hello.process.id.bytes[0] = input_.byte() % 8;
    const std::size_t role = input_.below(16);
    event.hello.role = role == 15  ? wire::Role::observer
                       : role < 12 ? wire::Role::supervisor
                                   : wire::Role::client;
    event.fresh_token.bytes[0] = static_cast<std::uint8_t>(last_connection_);
    said_ = event;
    apply(event);
    const Session* const session = find_session(event.hello.session_id);
    if (session == nullptr && input_.below(16) != 15) {
      apply(core::Echo{event.connection, event.fresh_token});
    }
  }

  /// Proves who it is, or is not asked.
  void prove(core::Hello& event, const Grant& grant) {
    event.grant = grant;
    if (grant != nullptr) event.unit = "identity " + to_string(grant->identity);
  }
  /// One of those who are known; null: by a way where nobody is asked.
  Grant anybody() {
    if (!has_identities_) return nullptr;
    const std::size_t who = input_.below(4);
    return who < grants_.size() ? grants_[who] : nullptr;
  }
  /// What somebody has now who had this; null: nothing any more.
  Grant now_of(const Grant& grant) const {
    for (const Grant& each : grants_) {
      if (each != nullptr && each->identity == grant->identity) return each;
    }
    return nullptr;
  }

  /// Another version of a line; or it is removed, or back.
  void regrant() {
    const std::size_t who = input_.below(grants_.size());
    const bool is_removed = grants_[who] != nullptr && input_.below(3) == 2;
    const Grant newer = is_removed ? nullptr : any_grant(input_, identities[who]);
    const Grant older = std::exchange(grants_[who], newer);
    for (Session& session : sessions_) {
      if (older != nullptr && session.grant == older && newer != nullptr) session.grant = newer;
    }
    apply(core::Regrant{{{older, newer}}});
    for (const Session& session : sessions_) {
      if (session.grant == nullptr || session.connection == 0) continue;
      require(now_of(session.grant) == session.grant, "who was removed has gone");
      require(session.grant->namespaces.allows(session.name_space), "it is where it may be");
    }
  }

  void connect() {
    core::Hello event;
    prove(event, anybody());
    event.hello.name_space = fuzz::name_spaces[input_.below(16) == 15 ? 1 : 0];
    hello(std::move(event));
  }

  void resume(const Session& session) {
    core::Hello event;
    event.hello.session_id = session.id;
    event.hello.incarnation = input_.below(32) == 31 ? 2 : 1;
    event.hello.name_space = session.name_space;
    event.hello.token = session.token;
    if (input_.below(32) == 31) event.hello.token.bytes[1] = 1;
    if (has_identities_ && input_.below(8) == 7) {
      prove(event, anybody());
    } else if (session.grant != nullptr) {
      prove(event, now_of(session.grant));
    }
    hello(std::move(event));
  }

  void ask(Session& session) {
    wire::Request request;
    request.id = ++last_request_;
    const std::uint64_t timeout = input_.wild();
    request.timeout =
        timeout < 16 ? Duration(500'000) * static_cast<int>(timeout) : base::timeout_max;
    request.body = fuzz::any_request(input_, epochs_);
    session.requests.push_back(request);
    send(session, request);
  }

  void repeat(Session& session) {
    if (session.requests.empty()) return;
    send(session, session.requests[input_.below(session.requests.size())]);
  }

  void send(Session& session, const wire::Request& request) {
    const core::Instant deadline = base::deadline_after(driver_.now, request.timeout);
    Expected& expected = expected_[request.id];
    // Parked, it keeps its deadline; answered while nobody was there, it may begin anew.
    if (expected.session == 0 || !expected.is_owed) expected.deadline = deadline;
    expected.deadline = std::min(expected.deadline, deadline);  // a repetition extends nothing
    expected.session = session.id;
    expected.is_owed = true;
    expected.operation = wire::operation_of(request.body);
    if (session.has(wire::facts_of(expected.operation).right)) permitted_.insert(request.id);
    apply(core::Requested{session.connection, &request});
  }

  std::vector<std::uint64_t> some_ids(const Session& session) {
    std::vector<std::uint64_t> ids;
    for (std::size_t count = input_.below(8); count > 0 && !session.requests.empty(); --count) {
      ids.push_back(session.requests[input_.below(session.requests.size())].id);
    }
    return ids;
  }

  void acknowledge(const Session& session) {
    const std::vector<std::uint64_t> ids = some_ids(session);
    apply(core::Acknowledged{session.connection, &ids});
  }

  void abandon(const Session& session) {
    const std::vector<std::uint64_t> ids = some_ids(session);
    for (const std::uint64_t id : ids) {
      const auto found = expected_.find(id);
      if (found == expected_.end()) continue;
      found->second.is_owed = false;
    }
    apply(core::Abandoned{session.connection, &ids});
  }

  void disconnect(Session& session) {
    const bool closed = input_.below(2) == 0;
    const auto cause = closed ? core::DisconnectCause::closed : core::DisconnectCause::lost;
    const core::ConnectionId connection = session.connection;
    forget(connection);
    apply(core::Disconnected{connection, cause});
  }

  void pass() {
    const std::uint8_t choice = input_.byte();
    if (choice < 240) return wait(Duration(1ms) * (1 + choice * 5));
    const Duration late = Duration(1s) * (choice - 238);  // the server did not run
    driver_.now += late;
    last_gap_ = driver_.now;
    apply(core::Late{late, late});
    apply(core::Advance{});
  }

  void wait(Duration duration) {
    for (const core::Instant end = driver_.now + duration; driver_.now < end;) {
      for (const Session& session : sessions_) {
        if (session.connection != 0 && input_.below(8) != 7) {
          driver_.apply(core::Heard{session.connection});
        }
      }
      driver_.pass(std::min<Duration>(end - driver_.now, 1s));
      look();
    }
    if (driver_.now < last_gap_ + 500ms) return;
    for (const auto& [id, expected] : expected_) {
      // The hosting rank's barrier is answered when the others have confirmed.
      if (!expected.is_owed || expected.operation == wire::operation<wire::CollectiveCall>)
        continue;
      require(expected.deadline + 2ms >= driver_.now, "no request waits past its deadline");
    }
  }

  void look() {
    std::vector<core::Effect> effects;
    effects.swap(driver_.effects);
    for (const core::Effect& effect : effects) {
      std::visit([this](const auto& one) { look_at(one); }, effect);
    }
    std::size_t connected = 0;
    for (const Session& session : sessions_) connected += session.connection != 0 ? 1 : 0;
    const core::Counts counts = driver_.engine.counts();
    require(counts.connections == connected, "the connections are those that stand");
    require(counts.sessions >= connected, "each has a session");
    // Those that were there when an operator has lowered the limit stay.
    const core::Options& limits = driver_.engine.options();
    const std::uint64_t sessions_max =
        core::SharedLimit{limits.sessions_max}.with_reserve() + limits.connections.operators_max;
    require(counts.sessions <= std::max(sessions_max, sessions_before_), "sessions are bounded");
    sessions_before_ = counts.sessions;
  }

  void look_at(const core::SendHello& effect) {
    require(effect.connection == said_.connection, "who said hello is answered");
    if (effect.hello->status != 0) return;
    Session* session = find_session(effect.hello->session_id);
    if (session == nullptr) {
      require(said_.hello.session_id == 0, "only a session that was is resumed");
      session = &sessions_.emplace_back();
      session->id = effect.hello->session_id;
      session->token = effect.hello->token;
      session->name_space = said_.hello.name_space;
      session->role = said_.hello.role;  // what it says when it comes back counts for nothing
    } else {
      require(is_same(session->grant, said_.grant), "nobody resumes a session of another identity");
    }
    require(said_.grant == nullptr || said_.grant->namespaces.allows(session->name_space),
            "a session is where its client may be");
    session->grant = said_.grant;
    session->connection = effect.connection;
  }
  void look_at(const core::SendReply& reply) {
    const auto found = expected_.find(reply.request_id);
    require(found != expected_.end(), "who asked is answered, once");
    const Expected expected = found->second;
    expected_.erase(found);
    const Session* const session = find_session(expected.session);
    require(session->connection == reply.connection, "the answer goes where the session is");
    const std::string body = test::body_of(reply);
    require(body.size() <= driver_.engine.options().limits.reply_bytes_max(), "it is not too long");
    if (reply.code != 0) {
      require(wire::decode_error(reply.code, body).has_value(), "an error can be decoded");
      require(reply.code != static_cast<std::uint16_t>(ErrorCode::internal), "no defect is told");
      return;
    }
    require(is_reply_to(expected.operation, body), "a reply can be decoded");
    require(permitted_.count(reply.request_id) != 0, "nothing is done without its right");
    if (expected.operation != wire::operation<wire::Join> &&
        expected.operation != wire::operation<wire::Regroup>)
      return;
    epochs_.push_back(wire::decode_body<wire::FormedReply>(body)->epoch);
  }
  void look_at(const core::SendEvent& event) {
    const auto kind = static_cast<std::uint16_t>(event.kind);
    require(wire::decode_event(kind, *event.body).has_value(), "an event can be decoded");
  }
  void look_at(const core::Close& effect) { forget(effect.connection); }
  void look_at(const core::SendHeartbeatReply&) {}
  void look_at(const core::SendGoodbye&) {}
  void look_at(const core::Log&) {}
  void look_at(const core::ForHost&) {}
  void look_at(const core::Postpone&) { require(false, "nothing waits to be sent here"); }

  static bool is_same(const Grant& a, const Grant& b) {
    if (a == nullptr || b == nullptr) return a == b;
    return a->identity == b->identity;
  }

  Session* find_session(std::uint64_t id) {
    for (Session& session : sessions_) {
      if (session.id == id) return &session;
    }
    return nullptr;
  }

  void forget(core::ConnectionId connection) {
    for (Session& session : sessions_) {
      if (session.connection != connection) continue;
      session.connection = 0;
      for (auto& [id, expected] : expected_) {
        if (expected.session == session.id) expected.is_owed = false;
      }
    }
  }

  static inline const std::array<auth::Identity, 3> identities = {
      {{"team", "a"}, {"team", "b"}, {"other", "c"}}};

  fuzz::Input& input_;
  test::EngineDriver driver_;
  const bool has_identities_;
  std::array<Grant, 3> grants_;        ///< of these identities; null: its line is not there
  std::set<std::uint64_t> permitted_;  ///< requests whose session had the right when it asked
  std::vector<Session> sessions_;
  std::vector<std::uint64_t> epochs_;
  std::map<std::uint64_t, Expected> expected_;
  core::Hello said_;
  std::uint64_t sessions_before_ = 0;
  core::ConnectionId last_connection_ = 8;  // beside those of EngineDriver::connect
  std::uint64_t last_request_ = 1'000'000;
  core::Instant last_gap_{};
};

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  Play play(input);
  while (!input.is_over()) play.step();
  play.finish();
  return 0;
}
