#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "gloo/machine.h"
#include "muster/gloo.h"
#include "support/child.h"
#include "support/ranks.h"

// Processes that a rank starts: a forked child is told that the communicator is not its own, and
// what it does does not touch its parent's; a program inherits no socket.

namespace muster::test {
namespace {

/// By their links: a descriptor that another thread is closing is not touched.
std::set<int> sockets() {
  constexpr std::string_view begin = "socket:";
  std::set<int> found;
  DIR* const folder = ::opendir("/proc/self/fd");
  while (const dirent* const entry = ::readdir(folder)) {
    std::array<char, begin.size()> link{};
    const ssize_t size = ::readlinkat(::dirfd(folder), entry->d_name, link.data(), link.size());
    if (size > 0 && std::string_view(link.data(), static_cast<std::size_t>(size)) == begin) {
      found.insert(std::atoi(entry->d_name));
    }
  }
  ::closedir(folder);
  return found;
}

/// Also one that is closed by now.
bool is_closed_on_exec(int descriptor) {
  std::ifstream info("/proc/self/fdinfo/" + std::to_string(descriptor));
  for (std::string name; info >> name;) {
    if (name != "flags:") continue;
    int flags = 0;
    info >> std::oct >> flags;
    return (flags & O_CLOEXEC) != 0;
  }
  return true;
}

/// Those with which this program was started.
const std::set<int> sockets_of_others = sockets();

/// Two ranks of one process, with a communicator.
class Pair {
 public:
  Pair() {
    run_ranks(2, [&](int rank) {
      Part& part = parts_[static_cast<std::size_t>(rank)];
      part.store.emplace(connect(server_));
      part.group.emplace(join(*part.store, "g", rank, 2));
      part.communicator.emplace(must(gloo::create(*part.group, within(20s))));
    });
  }

  StatelessProcessGroup& group() { return *parts_[0].group; }
  Communicator& communicator() { return *parts_[0].communicator; }
  void drop_communicators() {
    for (Part& part : parts_) part.communicator.reset();
  }
  void check_that_it_works() {
    run_ranks(2, [&](int rank) {
      auto& communicator = *parts_[static_cast<std::size_t>(rank)].communicator;
      CHECK_FALSE(communicator.error());
      CHECK(must(sum_of(communicator, rank + 1)) == 3);
    });
  }
  void close() {
    run_ranks(
        2, [&](int rank) { must(parts_[static_cast<std::size_t>(rank)].communicator->close()); });
  }

 private:
  struct Part {
    std::optional<Store> store;
    std::optional<StatelessProcessGroup> group;
    std::optional<Communicator> communicator;
  };

  Server server_ = start_server();
  std::array<Part, 2> parts_;
};

/// How many of all calls give anything but `forked`.
int odd_calls(Communicator& communicator, StatelessProcessGroup& group) {
  std::int32_t numbers[4] = {};
  int* const at = numbers;
  constexpr auto type = DataType::int32;
  constexpr auto sum = ReduceOp::sum;
  const auto made = gloo::create(group);
  const auto error = communicator.error();
  const std::vector<Result<void>> results = {
      communicator.all_reduce(at, at, 1, type, sum, nullptr),
      communicator.broadcast(at, at, 1, type, 0, nullptr),
      communicator.reduce(at, at, 1, type, sum, 0, nullptr),
      communicator.all_gather(at, at + 1, 1, type, nullptr),
      communicator.reduce_scatter(at, at, 1, type, sum, nullptr),
      communicator.all_to_all(at, at + 2, 1, type, nullptr),
      communicator.gather(at, at + 1, 1, type, 0, nullptr),
      communicator.scatter(at, at, 1, type, 0, nullptr),
      communicator.send(at, 1, type, 1, nullptr),
      communicator.recv(at, 1, type, 1, nullptr),
      communicator.recv(at, 1, type, 77, nullptr),
      communicator.grouped([] { return Result<void>(); }),
      communicator.attach(group),
      communicator.close(),
      error ? Result<void>(*error) : Result<void>(),
      made ? Result<void>() : Result<void>(made.error()),
  };
  int odd = 0;
  for (const auto& result : results) {
    odd += !result && result.error().code == ErrorCode::forked ? 0 : 1;
  }
  return odd;
}

TEST_CASE("a forked child gets `forked` from every call, and the parent goes on") {
  Pair ranks;
  CHECK(in_child([&] { return odd_calls(ranks.communicator(), ranks.group()); }) == 0);
  ranks.check_that_it_works();
  const int rank_and_size = in_child(
      [&] { return 10 * ranks.communicator().rank() + ranks.communicator().world_size(); });
  CHECK(rank_and_size == 2);
  ranks.close();
}

TEST_CASE("a communicator that goes in a forked child closes its sockets there, and no more") {
  Pair ranks;
  const int sockets_gone = in_child([&] {
    const std::size_t before = sockets().size();
    ranks.communicator().abort();
    ranks.drop_communicators();
    return static_cast<int>(before - sockets().size());
  });
  CHECK(sockets_gone == 2);
  ranks.check_that_it_works();
  ranks.close();
}

TEST_CASE("a program that a rank starts inherits none of its sockets") {
  Pair ranks;
  for (const int socket : sockets()) {
    if (sockets_of_others.count(socket) != 0) continue;
    CAPTURE(socket);
    CHECK(is_closed_on_exec(socket));
  }
  ranks.close();
}

}  // namespace
}  // namespace muster::test
