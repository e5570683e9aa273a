#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include <doctest/doctest.h>

#include "engine_driver.h"

// Every operation, asked for by a session of each role, with a credential line of each single
// right, in a namespace that the line allows, in one that it does not allow and that is there, and
// in one that is not there. Generated from the table of operations: a new one is asked, too.

using namespace muster;
using namespace muster::test;

namespace {

using auth::Rights;
using wire::Right;
using wire::Role;

constexpr std::array all_roles = {Role::client, Role::observer, Role::supervisor};
constexpr std::array all_rights = {Right::read,      Right::write, Right::join, Right::observe,
                                   Right::supervise, Right::admin, Right::peer};
constexpr std::string_view allowed = "train-1";
constexpr std::string_view not_allowed = "secret";
constexpr std::string_view not_there = "absent";

/// As docs/protocol.md says, and not as the table does.
constexpr std::array<std::pair<Right, std::string_view>, 7> operations_of_rights = {{
    {Right::read, "get exists wait multi_get list queue_length "},
    {Right::write,
     "set take add compare_set append remove multi_set touch cancel_take queue_push queue_pop "},
    {Right::join,
     "join leave regroup members cancel_regroup collective cancel_round send receive expire_data "
     "recover interrupt "},
    {Right::observe,
     "status sessions groups inspect_group waiters namespaces history get_settings "},
    {Right::supervise, "report_dead drop_namespace end_session "},
    {Right::admin, "set_setting drain "},
    {Right::any, "whoami "},
}};

std::shared_ptr<const auth::Grant> grant_of(Rights rights) {
  auth::Grant grant;
  grant.identity = {"team", "rank"};
  grant.namespaces = *auth::NamespacePatterns::read("train-*");
  grant.rights = rights;
  return std::make_shared<const auth::Grant>(std::move(grant));
}

class Matrix : public EngineDriver {
 public:
  /// In a server where somebody is in the namespaces that are there.
  explicit Matrix(core::Options options = {}) : EngineDriver(std::move(options)) {
    connect(std::string(allowed));
    connect(std::string(not_allowed));
  }

  /// Null: the hello was refused, and `refused_with` has the bytes of the answer.
  core::ConnectionId hello(std::string_view name_space, Role role,
                           std::shared_ptr<const auth::Grant> grant) {
    core::Hello event;
    event.connection = ++last_;
    event.unit = "identity team/rank";
    event.hello.name_space = name_space;
    event.hello.role = role;
    event.hello.process.host = "host";
    event.fresh_token.bytes[0] = static_cast<std::uint8_t>(last_);
    event.grant = std::move(grant);
    effects.clear();
    apply(event);
    for (const core::Effect& effect : effects) {
      const auto* const answer = std::get_if<core::SendHello>(&effect);
      if (answer == nullptr || answer->hello->status == 0) continue;
      refused_with.clear();
      wire::append_server_hello(refused_with, *answer->hello);
      return 0;
    }
    apply(core::Echo{event.connection, event.fresh_token});
    return event.connection;
  }

  /// Whether it is denied. Then nothing else comes of it, and nothing has changed. Its answer is
  /// kept, to be repeated, if the operation changes something, and acknowledged here.
  template <class Body>
  bool is_denied(core::ConnectionId connection) {
    effects.clear();
    const core::Counts before = engine.counts();
    const std::uint64_t id = ask(connection, Body{});
    const auto answer = reply(id);
    const bool denied = answer && code_of(*answer) == ErrorCode::permission_denied;
    if (denied) {
      CHECK(count<core::SendReply>() + count<core::SendEvent>() + count<core::Close>() == 0);
      CHECK(engine.counts().waits == before.waits);
      CHECK(engine.counts().keys == before.keys);
      CHECK(engine.counts().groups == before.groups);
      CHECK(engine.counts().sessions == before.sessions);
      const bool is_kept = wire::changes_state(wire::operation<Body>);
      CHECK(engine.counts().cached_results == before.cached_results + (is_kept ? 1 : 0));
      const std::vector<std::uint64_t> ids{id};
      apply(core::Acknowledged{connection, &ids});
      CHECK(engine.counts().cached_results == before.cached_results);
    }
    return denied;
  }

  std::string refused_with;

 private:
  core::ConnectionId last_ = 1000;
};

/// Calls `each` with a row of every operation.
template <class Each>
void for_all_operations(Each each) {
  std::apply([&](const auto&... rows) { (each(rows), ...); }, wire::operation_table);
}

}  // namespace

TEST_CASE("each operation needs the right that docs/protocol.md says") {
  std::map<Right, std::string> names;
  for (const wire::OperationFacts& facts : wire::operation_facts) {
    names[facts.right] += std::string(facts.name) + " ";
  }
  CHECK(names.size() == operations_of_rights.size());
  for (const auto& [right, text] : operations_of_rights) {
    const std::string told(text);
    CHECK(names[right].size() == told.size());
    for (std::size_t at = 0; at < told.size();) {
      const std::string name = told.substr(at, told.find(' ', at) + 1 - at);
      CHECK((" " + names[right]).find(" " + name) != std::string::npos);
      at += name.size();
    }
  }
}

TEST_CASE("every operation is denied without its right of line and role, and else reached") {
  int cells = 0;
  for (const Right right : all_rights) {
    for (const Role role : all_roles) {
      Matrix matrix;
      const Rights granted{right};
      const core::ConnectionId here = matrix.hello(allowed, role, grant_of(granted));
      REQUIRE(here != 0);
      for_all_operations([&]<class Body, class Reply>(const wire::Row<Body, Reply>& row) {
        const bool may = granted.has(row.right) && wire::has_right(role, row.right);
        CAPTURE(row.name);
        CHECK(matrix.is_denied<Body>(here) == !may);
        ++cells;
      });
      // Elsewhere no session begins, and one that is not there is refused by the same bytes.
      CHECK(matrix.hello(not_allowed, role, grant_of(granted)) == 0);
      const std::string there = matrix.refused_with;
      CHECK(matrix.hello(not_there, role, grant_of(granted)) == 0);
      CHECK(matrix.refused_with == there);
      CHECK(matrix.count<core::SendHello>() == 1);
      CHECK(matrix.count<core::Close>() == 1);
      cells += 2 * static_cast<int>(wire::operations_count);
    }
  }
  CHECK(cells ==
        static_cast<int>(all_rights.size() * all_roles.size() * 3 * wire::operations_count));
  MESSAGE(cells << " cells");
}

TEST_CASE("with all rights of a line, and without any line, the role alone decides") {
  int cells = 0;
  for (const Role role : all_roles) {
    for (const bool has_line : {true, false}) {
      Matrix matrix;
      const Rights all{Right::admin, Right::peer};
      const auto connection = matrix.hello(allowed, role, has_line ? grant_of(all) : nullptr);
      REQUIRE(connection != 0);
      for_all_operations([&]<class Body, class Reply>(const wire::Row<Body, Reply>& row) {
        CAPTURE(row.name);
        CHECK(matrix.is_denied<Body>(connection) == !wire::has_right(role, row.right));
        ++cells;
      });
    }
  }
  MESSAGE(cells << " cells");
}

TEST_CASE("a right that another version of the line gives or takes holds from then on") {
  int cells = 0;
  for (const Right right : all_rights) {
    for_all_operations([&]<class Body, class Reply>(const wire::Row<Body, Reply>& row) {
      Matrix matrix;
      const auto none = grant_of({Right::peer, Right::read});
      const auto one = grant_of({Right::peer, Right::read, right});
      const core::ConnectionId connection = matrix.hello(allowed, Role::supervisor, none);
      const bool had = none->rights.has(row.right);
      const bool has = one->rights.has(row.right);
      CAPTURE(row.name);
      CHECK(matrix.is_denied<Body>(connection) == !had);
      matrix.apply(core::Regrant{{{none, one}}});
      CHECK(matrix.is_denied<Body>(connection) == !has);
      matrix.apply(core::Regrant{{{one, none}}});
      CHECK(matrix.is_denied<Body>(connection) == !had);
      ++cells;
    });
  }
  MESSAGE(cells << " cells");
}

TEST_CASE("the status names the process that hosts the server to those who may know it") {
  core::Options options;
  options.host.process.id.bytes[0] = 1;
  options.host.tenant = "team";
  Matrix matrix(options);
  const auto is_told = [&matrix](std::shared_ptr<const auth::Grant> grant) {
    const auto connection = matrix.hello(allowed, Role::supervisor, std::move(grant));
    const auto answer = matrix.reply(matrix.ask(connection, wire::Status{}));
    REQUIRE(answer.has_value());
    const auto status = wire::decode_body<wire::StatusReply>(answer->head).value();
    return std::any_of(status.fields.begin(), status.fields.end(),
                       [](const auto& field) { return field.first == "hosting_process"; });
  };
  auth::Grant stranger = *grant_of({Right::observe, Right::join});
  stranger.identity.tenant = "other";
  CHECK(is_told(nullptr));
  CHECK(is_told(grant_of({Right::observe})));
  CHECK_FALSE(is_told(std::make_shared<const auth::Grant>(stranger)));
  stranger.rights = {Right::observe, Right::admin};
  CHECK(is_told(std::make_shared<const auth::Grant>(stranger)));
}
