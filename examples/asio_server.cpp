// An inference server on Asio that has one thread. An io_context serves its own protocol, and with
// muster/asio.h also the store that it hosts and the group of its workers.
//
//     asio_server 2    starts two workers and prints the port at which it takes lines by TCP, each
//                      answered by one line, until SIGTERM or SIGINT:
//
//         sum 1 2 3            the workers square a part of the numbers each: `14`
//         set NAME WORDS...    keeps something in the store
//         get NAME             waits for it, and keeps no other request waiting
//
// Each connection is a coroutine that awaits Muster's calls beside its own reads and writes. No
// call blocks, nothing needs a lock. A worker is the simple kind of program that blocks.

#include <deque>
#include <iostream>
#include <memory>
#include <optional>
#include <set>
#include <sstream>

#include <asio/awaitable.hpp>
#include <asio/buffer.hpp>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/read_until.hpp>
#include <asio/redirect_error.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/write.hpp>

#include "embed_server/worker_processes.h"
#include "in_one_process.h"
#include "muster/asio.h"
#include "muster/codec_cereal.h"

using namespace std::chrono_literals;
using asio::awaitable;
using asio::use_awaitable;
using asio::ip::tcp;
using example::require;
using muster::Result;
using muster::StatelessProcessGroup;

namespace {

/// What the server tells a worker. Without a tag for the answer: to end.
struct Order {
  std::uint64_t tag = 0;
  std::vector<std::int64_t> numbers;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(tag, numbers);
  }
};

/// Rank 0 of the group "workers". What it has goes from the last to the first, the loop last.
class InferenceServer {
 public:
  explicit InferenceServer(asio::io_context& context)
      : context_(context),
        loop_(require(muster::AsioLoop::create(context.get_executor()))),
        server_(start_server()),
        acceptor_(context, tcp::endpoint(asio::ip::address_v4::loopback(), 0)),
        all_have_gone_(context) {}

  /// The server's whole life.
  ///
  /// returns  how many sessions of others were left
  awaitable<std::uint64_t> run(int worker_count) {
    muster::StoreOptions options;
    options.label = "inference server";
    options.io_thread = loop_.io_thread();
    const std::string address = server_.addresses().front();
    store_.emplace(require(co_await muster::async_connect(address, options, 10s, use_awaitable)));
    workers_.start(address, worker_count);
    group_.emplace(require(co_await muster::async_create(*store_, "workers", 0, worker_count + 1,
                                                         group_options(), use_awaitable)));
    asio::co_spawn(context_, accept(), asio::detached);
    std::cout << "ready at " << acceptor_.local_endpoint().port() << std::endl;

    asio::signal_set signals(context_, SIGTERM, SIGINT);
    co_await signals.async_wait(use_awaitable);
    co_await end_connections();
    co_await dismiss_workers();
    co_return close();
  }

 private:
  using Connections = std::set<std::shared_ptr<tcp::socket>>;

  muster::Server start_server() {
    muster::ServerOptions options;
    options.io_thread = loop_.io_thread();
    options.hosting_rank = 0;  // errors at the workers say so when this process dies
    options.label = "inference server";
    return require(muster::Server::start(std::move(options)));
  }

  static muster::GroupOptions group_options() {
    muster::GroupOptions options;
    options.timeout = 30s;
    return options;
  }

  awaitable<void> accept() {
    for (;;) {
      asio::error_code error;
      tcp::socket socket =
          co_await acceptor_.async_accept(asio::redirect_error(use_awaitable, error));
      if (error == asio::error::operation_aborted) co_return;
      if (error) continue;
      asio::co_spawn(context_, serve(std::make_shared<tcp::socket>(std::move(socket))),
                     asio::detached);
    }
  }

  awaitable<void> serve(std::shared_ptr<tcp::socket> socket) {
    connections_.insert(socket);
    std::string received;
    asio::error_code error;
    while (!error) {
      const std::size_t size =
          co_await asio::async_read_until(*socket, asio::dynamic_buffer(received, line_bytes_max),
                                          '\n', asio::redirect_error(use_awaitable, error));
      if (error) break;
      const std::string line = received.substr(0, size - 1);
      received.erase(0, size);
      const std::string reply = co_await answer(line) + "\n";
      co_await asio::async_write(*socket, asio::buffer(reply),
                                 asio::redirect_error(use_awaitable, error));
    }
    connections_.erase(socket);
    if (connections_.empty()) all_have_gone_.cancel();
  }

  awaitable<std::string> answer(std::string line) {
    std::istringstream words(line);
    std::string what;
    std::string name;
    words >> what;
    if (what == "sum") {
      std::vector<std::int64_t> numbers;
      for (std::int64_t number; words >> number;) numbers.push_back(number);
      co_return text_of(co_await sum_of_squares(std::move(numbers)));
    }
    words >> name >> std::ws;
    if (what == "get" && !name.empty()) {
      co_return text_of(co_await muster::async_get(*store_, name, 10s, use_awaitable));
    }
    std::string value;
    std::getline(words, value);
    if (what == "set" && !value.empty()) {
      const auto set = co_await muster::async_set(*store_, name, value, {}, 10s, use_awaitable);
      co_return set.has_value() ? "kept" : set.error().message();
    }
    co_return "this is no request";
  }

  template <class T>
  static std::string text_of(const Result<T>& result) {
    std::ostringstream text;
    result ? text << *result : text << result.error().message();  // names the worker that is gone
    return text.str();
  }

  /// A stream of its own for each request: they do not wait for each other.
  awaitable<Result<std::int64_t>> sum_of_squares(std::vector<std::int64_t> numbers) {
    const std::uint64_t tag = ++last_tag_;
    const auto worker_count = static_cast<std::size_t>(group_->world_size() - 1);
    for (std::size_t worker = 0; worker < worker_count; ++worker) {
      Order order{tag, {}};
      for (std::size_t at = worker; at < numbers.size(); at += worker_count) {
        order.numbers.push_back(numbers[at]);
      }
      const auto sent = co_await muster::async_send_obj(*group_, muster::Rank(int(worker) + 1),
                                                        order, muster::Tag(), 10s, use_awaitable);
      if (!sent) co_return sent.error();
    }
    std::int64_t sum = 0;
    for (int rank = 1; rank < group_->world_size(); ++rank) {
      const auto part = co_await muster::async_recv_obj<std::int64_t>(
          *group_, muster::Rank{rank}, muster::Tag{tag}, 10s, use_awaitable);
      if (!part) co_return part.error();
      sum += *part;
    }
    co_return sum;
  }

  awaitable<void> end_connections() {
    acceptor_.close();
    store_->cancel();  // what they wait for
    for (const auto& socket : connections_) socket->shutdown(tcp::socket::shutdown_receive);
    all_have_gone_.expires_after(5s);
    asio::error_code ignored;
    if (connections_.empty()) co_return;
    co_await all_have_gone_.async_wait(asio::redirect_error(use_awaitable, ignored));
  }

  /// The process that hosts the server leaves a barrier last: afterwards nobody needs the server.
  awaitable<void> dismiss_workers() {
    for (int rank = 1; rank < group_->world_size(); ++rank) {
      const auto sent = co_await muster::async_send_obj(*group_, muster::Rank{rank}, Order(),
                                                        muster::Tag(), 5s, use_awaitable);
      if (!sent) std::cerr << sent.error().message() << '\n';
    }
    const auto passed = co_await muster::async_barrier(*group_, 5s, use_awaitable);
    if (!passed) std::cerr << passed.error().message() << '\n';  // says which worker is gone
  }

  std::uint64_t close() {
    group_.reset();
    store_.reset();
    return server_.stop("the inference server ends", 5s);
  }

  static constexpr std::size_t line_bytes_max = 4096;

  asio::io_context& context_;
  muster::AsioLoop loop_;
  muster::Server server_;
  std::optional<muster::Store> store_;
  example::WorkerProcesses workers_;
  std::optional<StatelessProcessGroup> group_;
  std::uint64_t last_tag_ = 0;
  tcp::acceptor acceptor_;
  Connections connections_;
  asio::steady_timer all_have_gone_;
};

/// A worker's life: it blocks until it is told what to do.
int work(const char* address, int rank, int world_size) {
  example::end_with_parent();
  muster::StoreOptions options;
  options.label = "worker " + std::to_string(rank);
  auto store = require(muster::Store::connect(address, std::move(options)));
  auto group = require(StatelessProcessGroup::create(store, "workers", rank, world_size));
  for (;;) {
    const auto order = group.recv_obj<Order>(muster::Rank{0});
    if (!order && order.error().code == muster::ErrorCode::timed_out) continue;  // quiet times
    if (!order) return 1;
    if (order->tag == 0) break;
    std::int64_t sum = 0;
    for (const std::int64_t number : order->numbers) sum += number * number;
    if (!group.send_obj(muster::Rank{0}, sum, muster::Tag{order->tag})) return 1;
  }
  return group.barrier(10s) ? 0 : 1;
}

int serve(int worker_count) {
  asio::io_context context;
  std::uint64_t sessions_left = 0;
  InferenceServer server(context);
  asio::co_spawn(context, server.run(worker_count),
                 [&](std::exception_ptr thrown, std::uint64_t left) {
                   if (thrown) std::rethrow_exception(thrown);
                   sessions_left = left;
                   context.stop();
                 });
  context.run();
  std::cout << "ended: " << sessions_left << " sessions left" << std::endl;
  return sessions_left == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 5 && argv[1] == std::string("--worker")) {
    return work(argv[2], std::atoi(argv[3]), std::atoi(argv[4]));
  }
  const int worker_count = argc == 2 ? std::atoi(argv[1]) : 0;
  if (worker_count > 0) return serve(worker_count);
  std::cerr << "usage: asio_server WORKER_COUNT\n";
  return 2;
}
