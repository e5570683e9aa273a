// Every call has a form that never blocks: the handler gets the result.

#include <future>

#include "in_one_process.h"

using namespace std::chrono_literals;
using example::require;

int main() {
  auto server = example::start_server();
  auto store = example::connect(server);

  std::promise<std::string> got;
  store.get_async("key", 5s, [&](muster::Result<std::string> value) {
    got.set_value(require(std::move(value)));
  });
  require(store.set("key", "value"));  // a waiting get never blocks another call
  require(got.get_future().get() == "value", "the handler gets the value");

  // A call can be cancelled by itself.
  std::promise<muster::ErrorCode> one;
  muster::Call call = store.get_async("never", 60s, [&](muster::Result<std::string> value) {
    require(!value, "nobody sets it");
    one.set_value(value.error().code);
  });
  call.cancel();
  require(one.get_future().get() == muster::ErrorCode::cancelled, "cancel ends the call");

  // `Store::cancel` ends all that wait; what comes later is not concerned.
  std::promise<muster::ErrorCode> all;
  store.get_async("never", 60s, [&](muster::Result<std::string> value) {
    require(!value, "nobody sets it");
    all.set_value(value.error().code);
  });
  store.cancel();
  require(all.get_future().get() == muster::ErrorCode::cancelled, "cancel ends every call");
  require(require(store.get("key")) == "value", "the store goes on");
  std::cout << "callbacks: as promised\n";
  return 0;
}
