// A trainer gives each version of its weights to inference servers, which are cut into slices:
//
//     musterd --listen 127.0.0.1:29400
//     weight_sync trainer 127.0.0.1:29400 --slices 2
//     weight_sync server 127.0.0.1:29400 --slice 0       one process for each server and slice
//
// Each line on the trainer's input is a training step; its end ends all. The trainer and the
// processes of one slice are a group: the trainer is in all of them, over one connection. What
// travels over the group is small (an order with names, shapes and checksums of the tensors, one
// barrier per version); the tensors travel over the group's communicator, Gloo's on the CPU, or
// NCCL's with `--device cuda`.
//
// Any of these processes may die at any time, and is started again by the same command. The others
// go on without a server and take it in when it is back. Without the trainer the servers keep the
// version that they have, and go on with the next one when it is back. Without musterd all wait for
// it, find each other again, and keep their communicators.
//
// Read slice.h first.

#include <cstdlib>
#include <iostream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "weight_sync/backend.h"
#include "weight_sync/server.h"
#include "weight_sync/trainer.h"

namespace weight_sync {
namespace {

using muster::Result;

using Arguments = std::map<std::string, std::string, std::less<>>;

int usage() {
  std::cerr << "weight_sync trainer ADDRESS [--slices N] [--slice-bytes N]\n"
               "weight_sync server ADDRESS --slice N\n"
               "ADDRESS is musterd's. Both: [--bucket-bytes N] [--device cpu|cuda|cuda:N]\n";
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

Result<Session> connect(const std::string& address, const std::string& label) {
  muster::StoreOptions options;
  options.label = label;  // errors at the others show it
  auto store = muster::Store::connect(address, options);
  if (!store) return std::move(store).error();
  return Session(*std::move(store));
}

Result<Slice> join_slice(Role role, const Backend& backend, Session& session, std::size_t slice,
                         const Arguments& arguments) {
  auto group = join(session, "weights/slice-" + std::to_string(slice));
  if (!group) return std::move(group).error();
  return Slice(role, backend, session, *std::move(group),
               number(arguments, "--bucket-bytes", 1 << 20));
}

int train(const Backend& backend, const std::string& address, const Arguments& arguments) {
  auto session = connect(address, "trainer");
  if (!session) return fail(session.error());
  Trainer trainer(number(arguments, "--slice-bytes", 16 << 20));
  for (std::size_t index = 0; index < number(arguments, "--slices", 2); ++index) {
    auto slice = join_slice(Role::trainer, backend, *session, index, arguments);
    if (!slice) return fail(slice.error());
    if (auto added = trainer.add(*std::move(slice)); !added) return fail(added.error());
  }
  std::cout << "ready" << std::endl;
  std::string line;
  while (std::getline(std::cin, line)) {
    if (auto published = trainer.publish(); !published) return fail(published.error());
  }
  const auto ended = trainer.end();
  return ended ? 0 : fail(ended.error());
}

int serve(const Backend& backend, const std::string& address, const Arguments& arguments) {
  auto session = connect(address, "server");
  if (!session) return fail(session.error());
  auto slice =
      join_slice(Role::server, backend, *session, number(arguments, "--slice", 0), arguments);
  if (!slice) return fail(slice.error());
  const auto ended = Server(*std::move(slice)).run();
  return ended ? 0 : fail(ended.error());
}

int run(const Backend& backend, const std::vector<std::string>& words, const Arguments& arguments) {
  if (words.size() != 2) return usage();
  if (words[0] == "trainer") return train(backend, words[1], arguments);
  if (words[0] == "server") return serve(backend, words[1], arguments);
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
