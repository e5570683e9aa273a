// A host whose event loop is Asio's: it runs Muster's handlers, beside Muster's own thread. Built
// and run by .ci/run.

#include <csignal>
#include <cstdio>
#include <future>
#include <string>
#include <thread>

#include <asio.hpp>

#include "muster/server.h"
#include "muster/store.h"

namespace {

using asio::ip::tcp;
using namespace std::chrono_literals;

int fail(const char* what, const std::string& why) {
  std::fprintf(stderr, "%s: %s\n", what, why.c_str());
  return 1;
}

/// The host's own network: whoever connects gets what it sends sent back.
class Echo {
 public:
  explicit Echo(asio::io_context& context)
      : acceptor_(context, tcp::endpoint(asio::ip::address_v4::loopback(), 0)), peer_(context) {
    acceptor_.async_accept(peer_, [this](const asio::error_code& error) {
      if (!error) read();
    });
  }

  tcp::endpoint endpoint() const { return acceptor_.local_endpoint(); }

 private:
  void read() {
    peer_.async_read_some(asio::buffer(bytes_), [this](const asio::error_code& error, auto count) {
      if (error) return;
      asio::async_write(peer_, asio::buffer(bytes_, count),
                        [this](const asio::error_code& failed, std::size_t) {
                          if (!failed) read();
                        });
    });
  }

  tcp::acceptor acceptor_;
  tcp::socket peer_;
  char bytes_[256];
};

std::string echoed(const tcp::endpoint& endpoint, const std::string& text) {
  asio::io_context context;
  tcp::socket socket(context);
  socket.connect(endpoint);
  asio::write(socket, asio::buffer(text));
  std::string answer(text.size(), ' ');
  asio::read(socket, asio::buffer(answer));
  return answer;
}

}  // namespace

int main() {
  asio::io_context context;
  Echo echo(context);
  std::promise<int> signalled;
  asio::signal_set signals(context, SIGUSR1);
  signals.async_wait(
      [&signalled](const asio::error_code&, int signal) { signalled.set_value(signal); });
  asio::steady_timer until_the_end(context, 60s);
  until_the_end.async_wait([](const asio::error_code&) {});
  std::thread hosts_thread([&context] { context.run(); });
  const auto end = [&](int status) {
    context.stop();
    hosts_thread.join();
    return status;
  };

  auto server = muster::Server::start();
  if (!server) return end(fail("start", server.error().message()));
  muster::StoreOptions options;
  options.executor = [&context](std::function<void()> work) { asio::post(context, work); };
  auto store = muster::Store::connect(server->addresses().front(), options);
  if (!store) return end(fail("connect", store.error().message()));

  std::promise<std::thread::id> ran_on;
  std::promise<std::string> got;
  store->get_async("key", 10s, [&](muster::Result<std::string> value) {
    ran_on.set_value(std::this_thread::get_id());
    got.set_value(value ? *value : value.error().message());
  });
  const std::string answer = echoed(echo.endpoint(), "through the host's own Asio");
  if (auto set = store->set("key", answer); !set) return end(fail("set", set.error().message()));
  if (ran_on.get_future().get() != hosts_thread.get_id()) {
    return end(fail("get_async", "the handler ran elsewhere than on the host's Asio"));
  }
  const std::string value = got.get_future().get();
  if (value != "through the host's own Asio") return end(fail("get_async", value));
  std::raise(SIGUSR1);
  if (signalled.get_future().get() != SIGUSR1) return end(fail("signal", "another one"));
  std::printf("%s\n", value.c_str());
  return end(0);
}
