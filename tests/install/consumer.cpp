// Built by .ci/run as a host would build it: C++17, what pkg-config says, and an Asio of the host's
// own with other settings than the one inside the library.

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>

#include <asio.hpp>

#include "muster/server.h"
#include "muster/store.h"

namespace {

int fail(const char* what, const muster::Error& error) {
  std::fprintf(stderr, "%s: %s\n", what, error.message().c_str());
  return 1;
}

bool runs_asio_of_its_own() {
  asio::io_context context;
  bool ran = false;
  asio::steady_timer timer(context, std::chrono::milliseconds(1));
  timer.async_wait([&ran](const asio::error_code& error) { ran = !error; });
  context.run();
  return ran;
}

}  // namespace

int main() {
  auto server = muster::Server::start();
  if (!server) return fail("start", server.error());
  auto store = muster::Store::connect(server->addresses().front());
  if (!store) return fail("connect", store.error());
  if (!runs_asio_of_its_own()) return 1;
  if (auto set = store->set("key", "value"); !set) return fail("set", set.error());
  const auto value = store->get("key");
  if (!value) return fail("get", value.error());
  std::printf("key = %s\n", value->c_str());
  return *value == "value" ? 0 : 1;
}
