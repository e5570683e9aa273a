// Four ranks average their gradients with a function that takes any communicator. On GPUs the
// caller makes it with nccl::create, and passes device memory and a stream. Here it is
// gloo::create, host memory and no stream.

#include "in_one_process.h"
#include "muster/gloo.h"

using namespace std::chrono_literals;
using example::require;
using muster::StatelessProcessGroup;

namespace {

muster::Result<void> average(muster::Communicator& communicator, float* gradients,
                             std::size_t count, void* stream) {
  return communicator.all_reduce(gradients, gradients, count, muster::DataType::float32,
                                 muster::ReduceOp::average, stream, 10s);
}

}  // namespace

int main() {
  auto server = example::start_server();
  example::run_ranks(4, [&](int rank) {
    auto store = example::connect(server);
    auto group = require(StatelessProcessGroup::create(store, "trainers", rank, 4));
    muster::gloo::Options options;
    options.timeout = 10s;
    auto communicator = require(muster::gloo::create(group, options));
    std::vector<float> gradients(1000, static_cast<float>(rank));
    require(average(communicator, gradients.data(), gradients.size(), nullptr));
    require(gradients == std::vector<float>(1000, 1.5F), "the average of 0, 1, 2 and 3 is 1.5");
    require(communicator.close());
  });
  std::cout << "Gloo, on host memory: as promised\n";
  return 0;
}
