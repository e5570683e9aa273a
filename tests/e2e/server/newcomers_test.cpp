#include <doctest/doctest.h>

#include "support/allocations.h"
#include "support/await.h"
#include "support/half_hellos.h"
#include "support/machine.h"
#include "support/raw_client.h"
#include "support/server.h"

// What it costs a server that somebody has connected and said no hello yet.

namespace {

using muster::Server;
using muster::test::await;
using muster::test::descriptor_count;
using muster::test::HalfHellos;
using muster::test::live_bytes_of_process;
using muster::test::RawClient;
using muster::test::start_disturbed_server;
namespace wire = muster::wire;

/// Waits until the server, which is of this process, has accepted all of them and read what each
/// has sent: a socket that was ready before is read before the last of these calls is answered.
void wait_for_all(const HalfHellos& half, std::size_t others_count, RawClient& member) {
  await([&] { return descriptor_count() == others_count + 2 * half.count(); });
  for (int count = 0; count < 5; ++count) CHECK(member.call(wire::Get{"key"}).header.code == 0);
}

TEST_CASE("a hello that is not whole takes at most 1 KiB") {
  constexpr std::size_t count = 1000;
  const Server server = start_disturbed_server();
  auto member = RawClient::with_session(server.addresses().front());
  CHECK(member.call(wire::Set{"key", "value", {}, false, false}).header.code == 0);
  HalfHellos half("127.0.0.2", server.port(), 2 * count);
  const std::size_t others_count = descriptor_count();
  half.open(count, wire::client_hello_bytes - 1);  // the containers have grown
  wait_for_all(half, others_count, member);
  const std::int64_t before = live_bytes_of_process();
  half.open(count, wire::client_hello_bytes - 1);
  wait_for_all(half, others_count, member);
  const std::int64_t each = (live_bytes_of_process() - before) / static_cast<std::int64_t>(count);
  CHECK(half.answered_count() == 0);
  CHECK(each > static_cast<std::int64_t>(wire::client_hello_bytes));
  CHECK(each <= 1024);
  MESSAGE("one takes ", each, " bytes");
}

}  // namespace
