// A trainer gives each version of its weights to N inference servers, which are cut into slices:
//
//     weight_sync trainer --servers 2 --slices 2         prints the address of its store, then
//     weight_sync server ADDRESS --rank 1 --slice 0      one process for each server and slice
//
// Each line on the trainer's input is a training step; its end ends all. The trainer and the
// processes of one slice are a group: the trainer is in all of them, over one connection. What
// travels over the group is small (an order with names, shapes and checksums of the tensors, one
// barrier per version); the tensors travel over the group's communicator, Gloo's on the CPU, or
// NCCL's with `--device cuda`. A server that dies is dropped and the rest go on; started again by
// the same command, it is taken in and gets the weights.
//
// Read slice.h first.

#include <cstdlib>
#include <map>
#include <string_view>

#include "muster/server.h"
#include "weight_sync/backend.h"
#include "weight_sync/server.h"
#include "weight_sync/trainer.h"

namespace weight_sync {
namespace {

using muster::Result;
using muster::StatelessProcessGroup;

using Arguments = std::map<std::string, std::string, std::less<>>;

int usage() {
  std::cerr << "weight_sync trainer [--servers N] [--slices N] [--slice-bytes N]\n"
               "weight_sync server ADDRESS --rank N --slice N [--servers N]\n"
               "both: [--bucket-bytes N] [--device cpu|cuda|cuda:N]\n";
  return 2;
}

int fail(const muster::Error& error) {
  std::cerr << error.message() << '\n';
  return 1;
}

std::size_t number(const Arguments& arguments, std::string_view name, std::size_t by_default) {
  const auto found = arguments.find(name);
  return found == arguments.end() ? by_default : std::strtoull(found->second.c_str(), nullptr, 10);
}

std::string group_name(std::size_t slice) { return "weights/slice-" + std::to_string(slice); }

muster::GroupOptions waiting() {
  muster::GroupOptions options;
  options.timeout = patience;
  options.standby = true;
  return options;
}

/// Into the group as it begins. Or, started again, among those who wait to be taken in: by a number
/// that nobody has, since the others may have been given new ones.
Result<StatelessProcessGroup> join_again_or_first(const muster::Store& store,
                                                  const std::string& name, int rank, int size) {
  auto group = StatelessProcessGroup::create(store, name, rank, size, waiting());
  if (group || group.error().code != muster::ErrorCode::rank_in_use) return group;
  return StatelessProcessGroup::create(store, name, size + rank, 2 * size, waiting());
}

int train(const Backend& backend, const Arguments& arguments) {
  auto server = muster::Server::start();
  if (!server) return fail(server.error());
  std::cout << "address " << server->addresses().front() << std::endl;
  auto store = muster::Store::connect(server->addresses().front());
  if (!store) return fail(store.error());
  Trainer trainer(number(arguments, "--slice-bytes", 16 << 20),
                  number(arguments, "--bucket-bytes", 1 << 20));
  const auto size = static_cast<int>(number(arguments, "--servers", 2)) + 1;
  for (std::size_t slice = 0; slice < number(arguments, "--slices", 2); ++slice) {
    auto group =
        StatelessProcessGroup::create(*store, group_name(slice), trainer_rank, size, waiting());
    if (!group) return fail(group.error());
    if (auto added = trainer.add(backend, *std::move(group)); !added) return fail(added.error());
  }
  std::cout << "ready" << std::endl;
  std::string line;
  for (std::uint64_t version = 1; std::getline(std::cin, line); ++version) {
    if (auto published = trainer.publish(version); !published) return fail(published.error());
  }
  const auto ended = trainer.end();
  server->stop("the training is over", patience, 1);  // when all but this process have gone
  return ended ? 0 : fail(ended.error());
}

int serve(const Backend& backend, const std::string& address, const Arguments& arguments) {
  auto store = muster::Store::connect(address);
  if (!store) return fail(store.error());
  const auto rank = static_cast<int>(number(arguments, "--rank", 1));
  const auto size = static_cast<int>(number(arguments, "--servers", 2)) + 1;
  auto group = join_again_or_first(*store, group_name(number(arguments, "--slice", 0)), rank, size);
  if (!group) return fail(group.error());
  Server server(backend, *std::move(group), number(arguments, "--bucket-bytes", 1 << 20));
  const auto ended = server.run();
  return ended ? 0 : fail(ended.error());
}

int run(const Backend& backend, const std::vector<std::string>& words, const Arguments& arguments) {
  if (words.size() == 1 && words[0] == "trainer") return train(backend, arguments);
  if (words.size() == 2 && words[0] == "server") return serve(backend, words[1], arguments);
  return usage();
}

}  // namespace
}  // namespace weight_sync

int main(int argc, char** argv) {
  using namespace weight_sync;
  std::vector<std::string> words;
  Arguments arguments;
  for (int index = 1; index < argc; ++index) {
    const std::string word = argv[index];
    if (word.rfind("--", 0) != 0) {
      words.push_back(word);
    } else if (index + 1 < argc) {
      arguments[word] = argv[++index];
    } else {
      return usage();
    }
  }
  if (arguments.count("--bucket-bytes") != 0 && number(arguments, "--bucket-bytes", 0) == 0) {
    return usage();
  }
  const std::string device = arguments.count("--device") != 0 ? arguments["--device"] : "cpu";
  if (device == "cuda" || device.rfind("cuda:", 0) == 0) {
    const int ordinal = device.size() > 5 ? std::atoi(device.c_str() + 5) : 0;
    return run(on_cuda(ordinal), words, arguments);
  }
  if (device != "cpu") return usage();  // never one in place of the other
#ifdef WEIGHT_SYNC_GLOO
  return run(on_cpu(), words, arguments);
#else
  std::cerr << "built without Gloo: --device cuda is all it has\n";
  return 1;
#endif
}
