// A host of muster-gloo and muster-nccl at once, of one rank, on a machine without libnccl: one
// function takes the communicator, the call that makes it names the kind. C++17.

#include <muster/gloo.h>
#include <muster/nccl.h>
#include <muster/server.h>

#include <cstdio>

namespace {

int fail(const muster::Error& error) {
  std::fprintf(stderr, "%s\n", error.message().c_str());
  return 1;
}

muster::Result<void> average(muster::Communicator& communicator, float& number) {
  return communicator.all_reduce(&number, &number, 1, muster::DataType::float32,
                                 muster::ReduceOp::average, nullptr, std::chrono::seconds(5));
}

}  // namespace

int main() {
  auto server = muster::Server::start();
  if (!server) return fail(server.error());
  auto store = muster::Store::connect(server->addresses().front());
  if (!store) return fail(store.error());
  auto group = muster::StatelessProcessGroup::create(*store, "job", 0, 1);
  if (!group) return fail(group.error());

  muster::nccl::Options lacking;
  lacking.nccl_library = "/nowhere/libnccl.so.2";
  const auto missing = muster::nccl::create(*group, 0, lacking);
  if (missing || missing.error().code != muster::ErrorCode::library_missing) return 1;

  auto communicator = muster::gloo::create(*group);
  if (!communicator) return fail(communicator.error());
  float number = 7;
  const auto reduced = average(*communicator, number);
  if (!reduced) return fail(reduced.error());
  const auto of_another_kind = muster::nccl::device(*communicator);
  if (of_another_kind || of_another_kind.error().code != muster::ErrorCode::invalid_argument) {
    return 1;
  }
  const auto closed = communicator->close(std::chrono::seconds(5));
  if (!closed) return fail(closed.error());
  return number == 7 ? 0 : 1;
}
