// A host on Asio in C++17, by callbacks and futures. Its io_context serves the host's own network
// and, with no further thread, Muster's server and store; and it runs the handlers of a store that
// has an I/O thread of its own. Built and run by .ci/run.

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <future>
#include <iterator>
#include <optional>
#include <string>
#include <thread>

#include <asio.hpp>

#include "muster/asio.h"
#include "muster/codec_raw.h"
#include "muster/server.h"

namespace {

using asio::ip::tcp;
using namespace std::chrono_literals;
using muster::Result;

void require(bool holds, const std::string& what) {
  if (holds) return;
  std::fprintf(stderr, "not so: %s\n", what.c_str());
  std::_Exit(1);
}

template <class T>
T require(Result<T> result) {
  require(result.has_value(), result.has_value() ? "" : result.error().message());
  return *std::move(result);
}

auto thread_count() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
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

/// Runs the context until it has what `begin` asks for.
template <class T, class Begin>
T await(asio::io_context& context, Begin begin) {
  std::optional<Result<T>> got;
  begin(asio::bind_executor(context, [&](Result<T> result) { got.emplace(std::move(result)); }));
  while (!got && context.run_one() > 0) {
  }
  return require(*std::move(got));
}

void use_one_thread() {
  asio::io_context context;
  auto loop = require(muster::AsioLoop::create(context.get_executor()));
  {
    muster::ServerOptions server_options;
    server_options.io_thread = loop.io_thread();
    const auto server = require(muster::Server::start(server_options));
    muster::StoreOptions options;
    options.io_thread = loop.io_thread();
    auto store = await<muster::Store>(context, [&](auto token) {
      muster::async_connect(server.addresses().front(), options, 10s, token);
    });
    auto group = await<muster::StatelessProcessGroup>(
        context, [&](auto token) { muster::async_create(store, "group", 0, 1, {}, token); });
    const auto all = await<std::vector<std::string>>(context, [&](auto token) {
      muster::async_all_gather_obj<muster::RawCodec>(group, std::string("part"), 10s, token);
    });
    require(all.size() == 1 && all[0] == "part", "a group of one gathers one part");
    require(store.get("key").error().code == muster::ErrorCode::would_deadlock,
            "blocking calls are refused");
    require(thread_count() == 1, "there is no further thread");
  }
  loop.stop();
  context.run();  // nothing keeps it
}

/// Sends `text` to the echo beside what else the context does.
void send(const tcp::endpoint& endpoint, std::string& text) {
  asio::io_context context;
  tcp::socket socket(context);
  socket.connect(endpoint);
  asio::write(socket, asio::buffer(text));
  text.assign(text.size(), ' ');
  asio::read(socket, asio::buffer(text));
}

void use_a_thread_of_its_own() {
  asio::io_context context;
  Echo echo(context);
  std::promise<int> signalled;
  asio::signal_set signals(context, SIGUSR1);
  signals.async_wait(
      [&signalled](const asio::error_code&, int signal) { signalled.set_value(signal); });
  std::thread hosts_thread([&context] { context.run(); });
  {
    const auto server = require(muster::Server::start());
    muster::StoreOptions options;
    options.handlers = muster::HandlerPlace::io_thread;
    auto store = require(muster::Store::connect(server.addresses().front(), options));
    auto got = muster::async_get(store, "key", 10s, asio::use_future);
    std::promise<std::thread::id> ran_on;
    muster::async_exists(store, "key", 10s, asio::bind_executor(context, [&](Result<bool>) {
                           ran_on.set_value(std::this_thread::get_id());
                         }));
    require(ran_on.get_future().get() == hosts_thread.get_id(), "the executor runs the handler");
    std::string text = "through the host's own Asio";
    send(echo.endpoint(), text);
    require(muster::async_set(store, "key", text, {}, 10s, asio::use_future).get());
    require(require(got.get()) == "through the host's own Asio", "the value arrives");
  }
  std::raise(SIGUSR1);
  require(signalled.get_future().get() == SIGUSR1, "the host's signals are its own");
  context.stop();
  hosts_thread.join();
}

}  // namespace

int main() {
  use_one_thread();
  use_a_thread_of_its_own();
  std::printf("Asio %d.%d.%d\n", ASIO_VERSION / 100000, ASIO_VERSION / 100 % 1000,
              ASIO_VERSION % 100);
  return 0;
}
