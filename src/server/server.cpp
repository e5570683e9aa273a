#include "muster/server.h"

#include <unistd.h>

#include <algorithm>
#include <functional>
#include <future>
#include <new>
#include <system_error>

#include "auth/wipe.h"
#include "base/failure.h"
#include "base/forked.h"
#include "base/monotonic_now.h"
#include "muster/interruptible.h"
#include "net/io_thread.h"
#include "net/listening.h"
#include "net/loop.h"
#include "server/service_host.h"
#include "server/settings.h"
#include "server/system_memory.h"

// What the application holds of a server: the service lives on the I/O thread, and everything here
// is a message to it. A forked child has no I/O thread; there only descriptors are closed.

MUSTER_BEGIN_NAMESPACE
namespace {

/// Beyond what a stop may wait by its own rules: the I/O thread may be busy with others.
constexpr Duration patience_with_io_thread = std::chrono::seconds(5);

Result<std::vector<net::Listening>> listen_on_given(int listening_socket,
                                                    const net::ListenOptions& how) {
  Result<net::Listening> given = net::listen_on(listening_socket, how);
  if (!given) return std::move(given).error();
  std::vector<net::Listening> listenings;
  listenings.push_back(std::move(*given));
  return listenings;
}

Result<std::vector<net::Listening>> listen_as(const ServerOptions& options,
                                              const core::Options& core) {
  const net::ListenOptions how{options.listen_backlog, options.allow_unauthenticated,
                               server::has_credentials(options), server::user_timeout_of(core)};
  if (options.listening_socket < 0) return net::listen_at(options.listen, how);
  return listen_on_given(options.listening_socket, how);
}

/// Nobody is asked who he is there, so other machines must be allowed expressly.
Result<std::vector<server::ServiceHost::TcpStoreListening>> listen_for_tcpstore(
    const ServerOptions& options, const core::Options& core) {
  net::ListenOptions how;
  how.backlog = options.listen_backlog;
  how.allow_unauthenticated =
      options.allow_unauthenticated || options.allow_unauthenticated_tcpstore;
  how.user_timeout = server::user_timeout_of(core);
  how.how_to_allow =
      "clients of TCPStore cannot say who they are: keep it to loopback, or say by "
      "allow_unauthenticated_tcpstore, of musterd --allow-unauthenticated-tcpstore, that this is "
      "meant";
  std::vector<server::ServiceHost::TcpStoreListening> all;
  for (std::size_t port = 0; port < options.tcpstore.size(); ++port) {
    const TcpStorePort& option = options.tcpstore[port];
    auto listenings = option.listening_socket < 0 ? net::listen_at({option.address}, how)
                                                  : listen_on_given(option.listening_socket, how);
    if (!listenings) return std::move(listenings).error();
    for (net::Listening& listening : *listenings) all.push_back({std::move(listening), port});
  }
  return all;
}

void tell_of_backlog(const ServerOptions& options) {
  const int system_max = net::backlog_max_of_system();
  const bool is_told = options.logger && options.log_level && *options.log_level <= LogLevel::info;
  if (!is_told || system_max == 0 || system_max >= options.listen_backlog) return;
  options.logger(LogLevel::info, "the system cuts the backlog of " +
                                     std::to_string(options.listen_backlog) + " newcomers to " +
                                     std::to_string(system_max) +
                                     "; raise net.core.somaxconn if very many connect at once");
}

void tell_of_memory(const ServerOptions& options, const std::string& reduced) {
  const bool is_told =
      options.logger && options.log_level && *options.log_level <= LogLevel::warning;
  if (!is_told || reduced.empty()) return;
  options.logger(LogLevel::warning, "the system limits the memory: " + reduced);
}

using base::failure;

/// Of `Server::start`.
Error refused(Error error) {
  error.operation = "start";
  error.decided_by = "local";
  return error;
}

CredentialChange change_of(const server::RollChange& change) {
  CredentialChange told;
  for (const auto& identity : change.added) told.added.push_back(to_string(identity));
  for (const auto& identity : change.removed) told.removed.push_back(to_string(identity));
  told.identities_count = change.identities_count;
  return told;
}

Error unavailable(const std::string& detail) {
  return refused(failure(ErrorCode::unavailable, detail));
}

}  // namespace

class Server::Impl {
 public:
  static Result<Server> start_or_fail(ServerOptions& options);

  Impl(std::shared_ptr<IoThread> io_thread, server::Settings settings,
       std::vector<net::Listening> listenings,
       std::vector<server::ServiceHost::TcpStoreListening> of_tcpstore)
      : io_thread_(std::move(io_thread)),
        incarnation_(settings.core.incarnation),
        door_(settings.door),
        metrics_(settings.metrics),
        watch_(settings.watch),
        host_(std::make_shared<server::ServiceHost>(loop(), std::move(settings))) {
    for (const net::Listening& listening : listenings) {
      addresses_.push_back(to_string(listening.address()));
      if (port_ == 0) port_ = listening.address().port();
    }
    tcpstore_ports_.resize(host_->service().settings().tcpstore.size());
    for (const auto& open : of_tcpstore) {
      tcpstore_ports_[open.port] = open.listening.address().port();
    }
    auto shared = std::make_shared<std::vector<net::Listening>>(std::move(listenings));
    auto shared_of_tcpstore = std::make_shared<std::vector<server::ServiceHost::TcpStoreListening>>(
        std::move(of_tcpstore));
    loop().post([host = host_, shared, shared_of_tcpstore] {
      try {
        host->start(std::move(*shared), std::move(*shared_of_tcpstore));
      } catch (const std::bad_alloc& thrown) {
        net::insist([&] { host->service().fail(thrown.what()); });
      }
    });
  }

  ~Impl() {
    if (io_thread_->impl().forked()) {
      leave_to_parent();
    } else {
      end();
    }
  }

  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  enum class Waiting { none, for_clients };

  std::uint64_t stop(const std::string& reason, Duration timeout, std::uint64_t own_sessions,
                     Waiting waiting) {
    IoThread::Impl& io = io_thread_->impl();
    if (io.forked()) return 0;
    if (io.on_io_thread() && (waiting == Waiting::none || !io.may_run())) {
      return host_->service().stop_now(reason, own_sessions);
    }
    auto left = std::make_shared<std::promise<std::uint64_t>>();
    std::future<std::uint64_t> answer = left->get_future();
    loop().post([host = host_, reason, timeout, own_sessions, waiting, left] {
      server::Service& service = host->service();
      if (waiting == Waiting::none) return left->set_value(service.stop_now(reason, own_sessions));
      service.stop(reason, timeout, own_sessions,
                   [left](std::uint64_t count) { left->set_value(count); });
    });
    const auto is_there = [&answer](Duration at_most) {
      return answer.wait_for(at_most) == std::future_status::ready;
    };
    const auto comes = [&](Duration at_most) {
      if (io.may_run()) io.run_until([&] { return is_there(Duration::zero()); }, at_most);
      return is_there(io.may_run() ? Duration::zero() : at_most);
    };
    if (waiting == Waiting::for_clients) wait_interruptibly(timeout, comes);
    return comes(std::min(timeout, base::timeout_max) + patience_with_io_thread) ? answer.get() : 0;
  }

  Result<CredentialChange> reload_credentials();
  Result<void> change_settings(const ServerOptions& options, const std::vector<std::string>& names,
                               std::string_view who);
  void log(LogLevel level, std::string_view line) const {
    if (!io_thread_->impl().forked()) host_->service().log().line(level, std::string(line));
  }

  Metrics metrics() const { return Metrics(metrics_); }
  Watch watch() const { return Watch(watch_); }

  const std::vector<std::string>& addresses() const { return addresses_; }
  std::uint16_t port() const { return port_; }
  const std::vector<std::uint16_t>& tcpstore_ports() const { return tcpstore_ports_; }
  std::uint64_t incarnation() const { return incarnation_; }

 private:
  /// Waits for the end of a stop. If this thread is interrupted, the clients get no more time.
  void wait_interruptibly(Duration timeout, const std::function<bool(Duration at_most)>& comes) {
    const Interruptible* const interruptible = Interruptible::current();
    if (interruptible == nullptr) return;
    const base::Instant deadline = base::deadline_after(base::monotonic_now(), timeout);
    while (!comes(interruptible->period()) && base::monotonic_now() < deadline) {
      if (!interruptible->is_interrupted()) continue;
      return loop().post(
          [host = host_] { host->service().stop({}, Duration::zero(), 0, [](std::uint64_t) {}); });
    }
  }

  static Result<Server> start(ServerOptions& options);
  net::Loop& loop() { return io_thread_->impl().loop(); }

  /// The service ends on the I/O thread. A destructor cannot say that memory is out: it waits a
  /// little for some, and then leaves the service behind rather than end the process.
  void end() {
    net::insist([this] {
      stop("the server was closed", Duration::zero(), 0, Waiting::none);
      end_on_io_thread();
    });
    if (host_) base::keep_forever(std::move(host_));
  }

  void end_on_io_thread() {
    const auto held = std::make_shared<std::shared_ptr<server::ServiceHost>>(std::move(host_));
    try {
      loop().post([held] { held->reset(); });
    } catch (const std::bad_alloc&) {
      host_ = std::move(*held);
      throw;
    }
    IoThread::Impl& io = io_thread_->impl();
    if (io.may_run()) io.run_until([&] { return *held == nullptr; }, patience_with_io_thread);
  }

  void leave_to_parent() {
    io_thread_->impl().close_inherited_sockets();
    base::keep_forever(std::move(host_));
    base::keep_forever(std::move(io_thread_));
  }

  std::shared_ptr<IoThread> io_thread_;
  std::uint64_t incarnation_;
  std::shared_ptr<const server::Door> door_;  ///< null: there are no credentials
  const std::shared_ptr<Metrics::Source> metrics_;
  const std::shared_ptr<Watch::Source> watch_;
  std::shared_ptr<server::ServiceHost> host_;
  std::vector<std::string> addresses_;
  std::uint16_t port_ = 0;
  std::vector<std::uint16_t> tcpstore_ports_;
};

/// They are read here, and used on the I/O thread.
Result<CredentialChange> Server::Impl::reload_credentials() {
  const auto refuse = [](Error error) {
    error.operation = "reload_credentials";
    error.decided_by = "local";
    return error;
  };
  IoThread::Impl& io = io_thread_->impl();
  if (io.forked()) {
    return refuse(failure(ErrorCode::forked, "the server belongs to the parent process"));
  }
  if (door_ == nullptr) {
    return refuse(failure(ErrorCode::unsupported, "the server was started without credentials"));
  }
  Result<server::Door::Version> version = door_->read();
  if (!version) return refuse(std::move(version).error());
  if (io.on_io_thread()) return change_of(host_->service().change_credentials(std::move(*version)));
  const auto shared = std::make_shared<server::Door::Version>(std::move(*version));
  const auto promise = std::make_shared<std::promise<CredentialChange>>();
  std::future<CredentialChange> answer = promise->get_future();
  loop().post([host = host_, shared, promise] {
    promise->set_value(change_of(host->service().change_credentials(std::move(*shared))));
  });
  const auto is_there = [&answer](Duration at_most) {
    return answer.wait_for(at_most) == std::future_status::ready;
  };
  if (io.may_run())
    io.run_until([&] { return is_there(Duration::zero()); }, patience_with_io_thread);
  if (is_there(io.may_run() ? Duration::zero() : patience_with_io_thread)) return answer.get();
  return refuse(failure(ErrorCode::unavailable, "the I/O thread does not run"));
}

/// They are checked here, and changed on the I/O thread.
Result<void> Server::Impl::change_settings(const ServerOptions& options,
                                           const std::vector<std::string>& names,
                                           std::string_view who) {
  const auto refuse = [](Error error) {
    error.operation = "change_settings";
    error.decided_by = "local";
    return error;
  };
  IoThread::Impl& io = io_thread_->impl();
  if (io.forked()) {
    return refuse(failure(ErrorCode::forked, "the server belongs to the parent process"));
  }
  if (auto valid = server::make_core_options(options); !valid) {
    return refuse(std::move(valid).error());
  }
  ServerOptions fitting = options;
  auth::wipe(fitting.credentials);
  const auto reduced = server::fit_memory(fitting, server::system_memory_limit());
  if (!reduced) return refuse(reduced.error());
  const bool is_asked = std::find(names.begin(), names.end(), "memory-bytes-max") != names.end();
  if (is_asked && !reduced->empty()) {
    log(LogLevel::warning, "the system limits the memory: " + *reduced);
  }
  auto core = server::make_core_options(fitting);
  if (!core) return refuse(std::move(core).error());
  const auto shared = std::make_shared<const core::Options>(*std::move(core));
  const std::string by(who.empty() ? "the program that has it" : who);
  const auto change = [host = host_, shared, names, by] {
    host->service().configure(core::Configure{shared.get(), names, by});
  };
  if (io.on_io_thread()) {
    change();
  } else {
    loop().post(change);
  }
  return {};
}

Result<Server> Server::Impl::start(ServerOptions& options) {
  if (options.io_thread && options.io_thread->impl().forked()) {
    return refused(
        failure(ErrorCode::forked,
                "the I/O thread belongs to the parent process; make another one in the child"));
  }
  if (auto valid = server::make_core_options(options); !valid) {
    return refused(std::move(valid).error());
  }
  const auto reduced = server::fit_memory(options, server::system_memory_limit());
  if (!reduced) return refused(reduced.error());
  tell_of_memory(options, *reduced);
  Result<server::Settings> settings = server::make_settings(options);
  if (!settings) return refused(std::move(settings).error());
  Result<std::vector<net::Listening>> listenings = listen_as(options, settings->core);
  if (!listenings) return refused(std::move(listenings).error());
  auto of_tcpstore = listen_for_tcpstore(options, settings->core);
  if (!of_tcpstore) return refused(std::move(of_tcpstore).error());
  tell_of_backlog(options);
  std::shared_ptr<IoThread> io_thread = options.io_thread;
  if (!io_thread) io_thread = IoThread::create("muster-server");
  if (!io_thread) return unavailable("the system has no thread or descriptor left");
  Server server(std::make_unique<Impl>(std::move(io_thread), std::move(*settings),
                                       std::move(*listenings), std::move(*of_tcpstore)));
  if (options.listening_socket >= 0) ::close(options.listening_socket);
  for (const TcpStorePort& port : options.tcpstore) {
    if (port.listening_socket >= 0) ::close(port.listening_socket);
  }
  return server;
}

Result<Server> Server::Impl::start_or_fail(ServerOptions& options) {
  try {
    return start(options);
  } catch (const std::system_error& error) {
    return unavailable(error.what());
  } catch (const std::bad_alloc&) {
    return refused(failure(ErrorCode::resource_exhausted, "this process has no memory left"));
  }
}

std::uint64_t connections_at_most(const ServerOptions& options) {
  core::ConnectionLimits limits;
  limits.connections_max = options.connections_max;
  limits.hello_connections_max = options.hello_connections_max;
  return limits.places();
}

Result<Server> Server::start(ServerOptions options) {
  Result<Server> started = Impl::start_or_fail(options);
  auth::wipe(options.credentials);
  return started;
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() = default;
Server::Server(Server&&) noexcept = default;
Server& Server::operator=(Server&&) noexcept = default;

const std::vector<std::string>& Server::addresses() const { return impl_->addresses(); }
std::uint16_t Server::port() const { return impl_->port(); }
const std::vector<std::uint16_t>& Server::tcpstore_ports() const { return impl_->tcpstore_ports(); }
std::uint64_t Server::incarnation() const { return impl_->incarnation(); }
Result<void> Server::change_settings(const ServerOptions& options,
                                     const std::vector<std::string>& names, std::string_view who) {
  return impl_->change_settings(options, names, who);
}
Metrics Server::metrics() const { return impl_->metrics(); }

Watch Server::watch() const { return impl_->watch(); }
void Server::log(LogLevel level, std::string_view line) const { impl_->log(level, line); }
Result<CredentialChange> Server::reload_credentials() { return impl_->reload_credentials(); }

std::uint64_t Server::stop(std::string_view reason, Duration timeout, std::uint64_t own_sessions) {
  return impl_->stop(std::string(reason), timeout, own_sessions, Impl::Waiting::for_clients);
}

MUSTER_END_NAMESPACE
