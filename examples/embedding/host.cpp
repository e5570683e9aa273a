// The smallest host: a server inside this process, and a client of it. C++17.

#include <muster/server.h>
#include <muster/store.h>

#include <cstdio>

namespace {

int fail(const muster::Error& error) {
  std::fprintf(stderr, "%s\n", error.message().c_str());
  return 1;
}

}  // namespace

int main() {
  auto server = muster::Server::start();  // on 127.0.0.1, at a port that is free
  if (!server) return fail(server.error());
  auto store = muster::Store::connect(server->addresses().front());
  if (!store) return fail(store.error());

  if (auto set = store->set("model", "muster-7b"); !set.has_value()) return fail(set.error());
  const auto model = store->get("model");
  if (!model) return fail(model.error());
  std::printf("model = %s\n", model->c_str());
  return 0;
}
