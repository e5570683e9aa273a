// A host of muster-gloo, of one rank. C++17.

#include <muster/gloo_communicator.h>
#include <muster/server.h>

#include <cstdio>

namespace {

int fail(const muster::Error& error) {
  std::fprintf(stderr, "%s\n", error.message().c_str());
  return 1;
}

}  // namespace

int main() {
  auto server = muster::Server::start();
  if (!server) return fail(server.error());
  auto store = muster::Store::connect(server->addresses().front());
  if (!store) return fail(store.error());
  auto group = muster::StatelessProcessGroup::create(*store, "job", 0, 1);
  if (!group) return fail(group.error());
  auto communicator = muster::GlooCommunicator::create(*group);
  if (!communicator) return fail(communicator.error());
  float number = 7;
  const auto reduced =
      communicator->all_reduce(&number, &number, 1, muster::DataType::float32,
                               muster::ReduceOp::average, nullptr, std::chrono::seconds(5));
  if (!reduced) return fail(reduced.error());
  const auto closed = communicator->close(std::chrono::seconds(5));
  if (!closed) return fail(closed.error());
  return number == 7 ? 0 : 1;
}
