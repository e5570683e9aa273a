// One rank of a group, for tests of what a server tells of it.
//
//     http_ranks HOST:PORT NAMESPACE GROUP RANK WORLD_SIZE
//
// Prints "joined" when the group is formed. Each line of its standard input is a call, which is
// done on a thread of its own: "barrier [MS]", "receive RANK", "regroup", "set KEY VALUE", "wait
// KEY". Prints "ok", or the name of the error, when one has ended. Ends with the standard input.

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <iostream>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "muster/codec_raw.h"
#include "muster/process_group.h"
#include "muster/store.h"

namespace {

using Group = muster::StatelessProcessGroup;

std::mutex mutex;

void tell(const std::string& line) {
  const std::lock_guard lock(mutex);
  std::cout << line << std::endl;
}

template <class T>
void tell_of(const muster::Result<T>& result) {
  tell(result.has_value() ? "ok" : std::string(name_of(result.error().code)));
}

/// returns  whether it was one
bool do_call(muster::Store& store, Group& group, std::istringstream& line) {
  std::string name;
  line >> name;
  if (name == "barrier") {
    std::int64_t time_ms = 0;
    if (!(line >> time_ms)) time_ms = 600'000;
    tell_of(group.barrier(std::chrono::milliseconds(time_ms)));
  } else if (name == "receive") {
    int source = 0;
    line >> source;
    tell_of(group.recv_obj<std::string, muster::RawCodec>(muster::Rank(source)));
  } else if (name == "regroup") {
    auto regrouped = group.regroup();
    tell_of(regrouped);
    if (regrouped) group = std::move(*regrouped);
  } else if (name == "set") {
    std::string key;
    std::string value;
    line >> key >> value;
    tell_of(store.set(key, value));
  } else if (name == "wait") {
    std::string key;
    line >> key;
    tell_of(store.get(key));
  } else {
    return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  muster::StoreOptions options;
  options.name_space = argv[2];
  options.label = std::string("rank-") + argv[4];
  auto store = muster::Store::connect(argv[1], options);
  if (!store) {
    tell(store.error().message());
    return 1;
  }
  tell("connected");
  muster::GroupOptions of_group;
  auto group = Group::create(*store, argv[3], std::stoi(argv[4]), std::stoi(argv[5]), of_group);
  if (!group) {
    tell(group.error().message());
    return 1;
  }
  tell("joined");
  std::vector<std::thread> calls;
  for (std::string line; std::getline(std::cin, line);) {
    calls.emplace_back([&, line] {
      std::istringstream words(line);
      if (!do_call(*store, *group, words)) tell("no call");
    });
  }
  ::_exit(0);  // what still waits is lost with it
}
