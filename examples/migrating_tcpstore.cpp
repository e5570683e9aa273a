// The calls of a TCPStore, one after the other, as they are written here; see docs/migrating.md for
// what differs.

#include "in_one_process.h"

using namespace std::chrono_literals;
using example::require;
using muster::ErrorCode;
using muster::StatelessProcessGroup;
using muster::Store;

namespace {

/// The constructor with is_master: whoever binds tells the port to the others, and goes last.
muster::Server start_master() {
  muster::ServerOptions options;
  options.listen = {"127.0.0.1:0"};
  return require(muster::Server::start(std::move(options)));
}

/// The constructor of everybody, the master included; PrefixStore is a namespace.
Store connect(const std::string& address, const std::string& prefix) {
  muster::StoreOptions options;
  options.timeout = 300s;  // of every call that is given none
  options.name_space = prefix;
  return require(Store::connect(address, std::move(options), 30s));
}

/// wait_for_workers: all are there, or the error names those who are not.
StatelessProcessGroup wait_for_workers(const Store& store, int rank, int world_size) {
  muster::GroupOptions options;
  options.timeout = 30s;
  return require(StatelessProcessGroup::create(store, "workers", rank, world_size, options));
}

/// set, get, check, add, append, delete_key.
void keys(Store& store) {
  require(store.set("key", "value"));
  require(require(store.get("key", 10s)) == "value", "get waits for its key");
  const auto absent = store.get("absent", 0s);
  require(!absent && absent.error().code == ErrorCode::not_found, "zero asks once");
  const std::vector<bool> there = require(store.multi_exists({"key", "absent"}));
  require(there[0] && !there[1], "in the order of the keys");
  require(require(store.add("counter", 5)) == 5, "an absent number counts as 0");
  require(require(store.append("key", "!")) == 6, "the new length");
  require(require(store.remove("key")), "it was there");
}

/// compare_set: an absent key is expected as none, not as an empty text.
void compare_and_set(Store& store) {
  const auto first = require(store.compare_set("leader", {}, "rank 0"));
  require(first.applied, "the key was absent");
  const auto second = require(store.compare_set("leader", {}, "rank 1"));
  require(!second.applied && second.current == "rank 0", "it tells what is there");
}

/// multi_set, multi_get: all at one instant; a wait before makes sure that all are there.
void many_keys(Store& store) {
  require(store.multi_set({{"a", "1"}, {"b", "2"}}));
  require(store.wait({"a", "b"}, 10s));
  const auto values = require(store.multi_get({"a", "b", "c"}));
  require(values[0] == "1" && values[1] == "2" && !values[2], "absent is told as none");
}

/// num_keys: by pages.
std::size_t num_keys(Store& store, const std::string& prefix) {
  std::size_t count = 0;
  std::uint64_t cursor = 0;
  do {
    const auto page = store.list(prefix, cursor);
    require(page.has_value(), "a page comes");
    count += page->keys.size();
    cursor = page->cursor;
  } while (cursor != 0);
  return count;
}

/// queue_push, queue_pop, queue_len: any number of pushers and poppers, each item is popped once.
void queues(Store& store) {
  require(store.queue_push("queue", "work"));
  require(require(store.queue_length("queue")) == 1, "it is not popped yet");
  require(require(store.queue_pop("queue", 10s)) == "work", "it waits for an item");
  const auto none = store.queue_pop("queue", 0s);
  require(!none && none.error().code == ErrorCode::not_found, "zero asks once");
}

}  // namespace

int main() {
  constexpr int world_size = 3;
  auto server = start_master();
  const std::string address = server.addresses().front();
  example::run_ranks(world_size, [&](int rank) {
    auto store = connect(address, "job 7");
    auto workers = wait_for_workers(store, rank, world_size);
    if (rank == 0) {
      keys(store);
      compare_and_set(store);
      many_keys(store);
    }
    if (rank == 1) queues(store);
    require(workers.barrier(30s));
  });
  auto store = connect(address, "job 7");
  require(num_keys(store, "queue") == 0, "a queue is no key that has a value");
  auto other = connect(address, "job 8");
  require(num_keys(other, "") == 0, "namespaces do not see each other");
  std::cout << "migrating from a TCPStore: as promised\n";
  return 0;
}
