#include "server/http/front/front_thread.h"

#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <future>
#include <new>
#include <system_error>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/failure.h"
#include "base/monotonic_now.h"
#include "base/random.h"
#include "base/thread.h"
#include "server/http/front/connection.h"
#include "server/http/front/listener.h"
#include "server/http/front/own_descriptors.h"
#include "server/http/front/places.h"

// Life cycle: the thread starts -> it takes descriptors of its own -> it opens its sockets, and
// reports -> it serves -> an order ends it. All that has a descriptor is made and let go on it:
// on another thread the same number is something else.

namespace muster::server::http {
namespace {

namespace net = boost::asio;

constexpr std::chrono::seconds look_at_turns_every(1);

/// Where processors are few, the server comes first.
constexpr int niceness_beside_server = 10;

/// Of this thread alone: Linux has one for each.
void let_others_go_first() {
  const auto self = static_cast<id_t>(::gettid());
  ::setpriority(PRIO_PROCESS, self, ::getpriority(PRIO_PROCESS, self) + niceness_beside_server);
}

Error failure_of_system(const std::string& what, int error) {
  return base::failure(ErrorCode::unavailable,
                       what + ": " + std::generic_category().message(error));
}

}  // namespace

/// What lives on the thread.
class FrontThread::Rooms {
 public:
  explicit Rooms(ThreadOptions& options)
      : site_(std::move(options.routes), options.names, options.limits, options.log),
        places_(options.limits.connections_max, options.limits.connections_per_address_max),
        listener_(context_, site_, places_),
        bell_(context_, kept_as),
        clock_(context_) {
    site_.set_tokens(std::move(options.tokens));
    if (options.asks_for_token)
      site_.ask_for_token(options.tls ? Site::Transport::tls : Site::Transport::plain,
                          base::fill_random);
  }

  net::io_context& context() { return context_; }
  Site& site() { return site_; }
  Listener& listener() { return listener_; }

  void await_orders(const std::function<void()>& come) {
    bell_.async_wait(net::posix::stream_descriptor::wait_read,
                     [this, come](boost::system::error_code error) {
                       if (error) return;
                       std::uint64_t count = 0;
                       [[maybe_unused]] const auto size = ::read(kept_as, &count, sizeof count);
                       await_orders(come);
                       come();
                     });
  }

  void watch_turns(const std::function<std::uint64_t()>& turns) {
    site_.see_turns(turns(), base::monotonic_now());
    clock_.expires_after(look_at_turns_every);
    clock_.async_wait([this, turns](boost::system::error_code error) {
      if (!error) watch_turns(turns);
    });
  }

  /// What is thrown, for want of memory, ends the connection that it was thrown in.
  void run() {
    while (!context_.stopped()) {
      try {
        context_.run();
      } catch (const std::exception&) {
      }
    }
  }

 private:
  Site site_;
  Places places_;
  net::io_context context_{1};
  Listener listener_;
  net::posix::stream_descriptor bell_;
  net::steady_timer clock_;
};

Result<std::unique_ptr<FrontThread>> FrontThread::start(ThreadOptions options) {
  std::unique_ptr<FrontThread> made(new FrontThread(std::move(options)));
  Result<void> begun = made->begin();
  if (!begun) return std::move(begun).error();
  return made;
}

Result<void> FrontThread::begin() {
  bell_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (bell_ < 0) return failure_of_system("the system has no descriptor left", errno);
  std::promise<Result<void>> promise;
  auto begun = promise.get_future();
  thread_ = base::start_thread("muster-http", [this, &promise] {
    bool has_reported = false;
    const auto report = [&](Result<void> result) {
      if (!std::exchange(has_reported, true)) promise.set_value(std::move(result));
    };
    try {
      run(report);
    } catch (const std::exception& thrown) {
      report(base::failure(ErrorCode::unavailable, thrown.what()));
    }
  });
  return begun.get();
}

void FrontThread::run(const std::function<void(Result<void>)>& report) {
  const int error = take_own_descriptors(bell_);
  if (error != 0)
    return report(failure_of_system(
        "the system gives the thread of HTTP no descriptors of its own (close_range, unshare)",
        error));
  let_others_go_first();
  Rooms rooms(options_);
  rooms.listener().set_tls(options_.tls);
  const bool asks = options_.tls && (options_.asks_for_token || options_.asks_for_certificate);
  const Reach reach =
      asks || options_.allows_unauthenticated ? Reach::everywhere : Reach::loopback_alone;
  Result<void> opened = rooms.listener().open(options_.address, reach);
  if (!opened) return report(std::move(opened));
  address_ = rooms.listener().address();
  port_ = rooms.listener().port();
  rooms.watch_turns(options_.turns);
  rooms.await_orders([this, &rooms] { take_orders(rooms); });
  rooms.listener().begin();
  report({});
  rooms.run();
}

void FrontThread::take_orders(Rooms& rooms) {
  Orders orders;
  {
    const std::lock_guard lock(mutex_);
    orders = std::exchange(orders_, {});
  }
  if (orders.ends) return rooms.context().stop();
  if (orders.tls) rooms.listener().set_tls(std::move(orders.tls));
  for (const auto& work : orders.works) work(rooms.site());
}

void FrontThread::order(std::function<void(Site& site)> work) {
  const std::lock_guard lock(mutex_);
  orders_.works.push_back(std::move(work));
  ring();
}

void FrontThread::set_tls(std::shared_ptr<TlsContext> tls) {
  const std::lock_guard lock(mutex_);
  orders_.tls = std::move(tls);
  ring();
}

void FrontThread::ring() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto size = ::write(bell_, &one, sizeof one);
}

FrontThread::~FrontThread() {
  if (thread_.joinable()) {
    {
      const std::lock_guard lock(mutex_);
      orders_.ends = true;
      ring();
    }
    thread_.join();
  }
  if (bell_ >= 0) ::close(bell_);
}

}  // namespace muster::server::http
