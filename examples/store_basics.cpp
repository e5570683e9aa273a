// Keys: set, get that waits, numbers, compare and set, time to live, keys bound to a session.

#include "in_one_process.h"

using namespace std::chrono_literals;
using example::require;

namespace {

void one_key(muster::Store& store) {
  require(store.set("model/name", "muster-7b"));
  require(require(store.get("model/name")) == "muster-7b", "get gives what was set");
  const auto absent = store.get("model/none", 0s);
  require(!absent && absent.error().code == muster::ErrorCode::not_found, "zero asks once");
  require(require(store.add("counter", 5)) == 5, "a missing number counts as 0");
  const auto compared = require(store.compare_set("model/name", "other", "new"));
  require(!compared.applied && compared.current == "muster-7b", "compare_set tells what is there");
}

void waiting(muster::Store& store, muster::Store& other) {
  std::thread setter([&] { require(other.set("late", "here")); });
  require(require(store.get("late", 5s)) == "here", "a get waits for its key");
  setter.join();
  require(store.wait({"late", "counter"}, 5s));
  require(require(store.take("late")) == "here", "take gets and removes");
  require(!require(store.exists("late")), "the key is gone");
}

void keys_that_go_by_themselves(const muster::Server& server, muster::Store& store) {
  muster::SetOptions brief;
  brief.ttl = 50ms;
  require(store.set("brief", "", brief));
  {
    auto owner = example::connect(server);
    muster::SetOptions bound;
    bound.bind_to_session = true;
    require(owner.set("alive/owner", "", bound));
    require(require(store.exists("alive/owner")), "there while its owner lives");
    owner.close();
  }
  // Both go without anybody asking for it: by the server's clock, and with the owner's session.
  while (require(store.exists("brief")) || require(store.exists("alive/owner"))) {
    std::this_thread::yield();
  }
}

}  // namespace

int main() {
  auto server = example::start_server();
  auto store = example::connect(server);
  auto other = example::connect(server);
  one_key(store);
  waiting(store, other);
  keys_that_go_by_themselves(server, store);
  std::cout << "store basics: as promised\n";
  return 0;
}
