#include "core/session_connections.h"

#include <vector>

#include <doctest/doctest.h>

#include "core/name_space.h"

using namespace muster;

namespace {

constexpr core::ConnectionId id_of(std::uint64_t serial, std::uint64_t place) {
  return serial << core::connection_place_bits | place;
}

struct Server {
  core::EngineServices services{core::Options{}};
  core::WaitingNames names;
  core::Unit unit{"10.0.0.1", services.memory().all};
  core::History history{services};
  core::NameSpace name_space{"", &unit, services, names, history};
  core::Account& account = name_space.accounts.find_or_make(unit);
};

}  // namespace

TEST_CASE("a session is found by the place of its connection, and by no older one there") {
  Server server;
  core::SessionConnections connections(server.services.effects());
  core::Session a(1, server.name_space, server.account);
  core::Session b(2, server.name_space, server.account);
  connections.add(id_of(7, 0), a);
  connections.add(id_of(8, 200), b);
  CHECK(connections.session_on(id_of(7, 0)) == &a);
  CHECK(connections.session_on(id_of(8, 200)) == &b);
  CHECK(connections.session_on(id_of(8, 0)) == nullptr);
  CHECK(connections.session_on(id_of(7, 5000)) == nullptr);
  CHECK(connections.count() == 2);

  connections.close(id_of(7, 0), Error{});
  CHECK(connections.session_on(id_of(7, 0)) == nullptr);
  connections.add(id_of(9, 0), b);
  connections.forget(id_of(7, 0));  // long gone
  CHECK(connections.session_on(id_of(9, 0)) == &b);
  CHECK(connections.why_closed(id_of(7, 0)) != nullptr);
  CHECK(connections.why_closed(id_of(9, 0)) == nullptr);
  CHECK(connections.all() == std::vector{id_of(8, 200), id_of(9, 0)});
}
