// musterd: a Muster server in a process of its own.

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>
#include <new>

#include "base/secret/unshown.h"
#include "flags.h"
#include "given.h"
#include "http_front.h"
#include "log_queue.h"
#include "memory_reserve.h"
#include "muster/io_thread.h"
#include "muster/server.h"
#include "port_file.h"
#include "settings.h"
#include "support/standard_output.h"

namespace {

using musterd::Configuration;

/// Beside connections and newcomers: those that take their last bytes, listeners, files, pipes.
constexpr std::uint64_t other_descriptors = 256 + 64;
constexpr std::uint64_t newcomers_least = 256;

int fail(int code, const std::string& why) {
  std::cerr << "musterd: " << why << '\n';
  return code;
}

// State that the signal handlers use.
std::atomic<int> stop_signal{0};  ///< the one that came; 0: none
std::atomic<bool> has_hung_up{false};
std::atomic<muster::IoThread*> serving{nullptr};

/// The first one stops it in order, the second one at once, whatever it is at.
void on_stop_signal(int signal) {
  int none = 0;
  if (!stop_signal.compare_exchange_strong(none, signal)) {
    ::signal(signal, SIG_DFL);
    ::raise(signal);  // arrives when this handler has returned
    return;
  }
  if (auto* const io_thread = serving.load()) io_thread->wake();
}

/// Of a terminal that closes, or of somebody who wants the settings read again.
void on_hang_up(int) {
  has_hung_up = true;
  if (auto* const io_thread = serving.load()) io_thread->wake();
}

/// From now on SIGTERM and SIGINT are heard, unless whoever started it ignores them; SIGHUP is in
/// any case, since it ends nothing.
void await_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    struct sigaction action {};
    ::sigaction(signal, nullptr, &action);
    if (action.sa_handler == SIG_IGN && signal != SIGHUP) continue;
    action = {};
    action.sa_handler = signal == SIGHUP ? on_hang_up : on_stop_signal;
    action.sa_flags = SA_RESTART;
    ::sigaction(signal, &action, nullptr);
    sigaddset(&signals, signal);
  }
  ::pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

/// No socket gets the number of a standard stream that is closed. What stands for the standard
/// output refuses to be written: nothing is lost without a word.
void open_standard_descriptors() {
  for (int descriptor = 0; descriptor <= STDERR_FILENO; ++descriptor) {
    const int access = descriptor == STDOUT_FILENO ? O_RDONLY : O_RDWR;
    if (::fcntl(descriptor, F_GETFD) == -1) ::open("/dev/null", access);
  }
}

/// returns  the limit on file descriptors, raised as far as the system lets it
std::uint64_t raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return UINT64_MAX;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

/// Lowers `connections_max` until all connections have a descriptor, or only one is left.
void lower_connections(muster::ServerOptions& options, std::uint64_t descriptors) {
  while (options.connections_max > 1) {
    const std::uint64_t needed = muster::connections_at_most(options);
    if (needed <= descriptors) return;
    // With each connection an eighth of a place in the reserve is given up as well.
    const std::uint64_t fewer = std::max<std::uint64_t>((needed - descriptors) / 9 * 8, 1);
    options.connections_max -=
        static_cast<std::uint32_t>(std::min<std::uint64_t>(fewer, options.connections_max - 1));
  }
}

/// Fits the numbers of connections to the descriptors that there are, unless they were asked for.
/// Newcomers take what those with sessions leave, and have some in any case.
///
/// returns  what is wrong; empty: nothing
std::string fit_connections(Configuration& configuration, const muster::Logger& log) {
  muster::ServerOptions& options = configuration.server;
  std::uint32_t& newcomers_max = options.hello_connections_max;
  const std::uint64_t limit = raise_descriptor_limit();
  const std::uint64_t free = limit - std::min(limit, other_descriptors);
  if (!configuration.hello_connections_max_is_given) {
    const std::uint64_t others = muster::connections_at_most(options) - newcomers_max;
    const std::uint64_t left = free - std::min(free, others);
    const std::uint64_t least = std::min<std::uint64_t>(newcomers_least, free / 4);
    newcomers_max =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(newcomers_max, std::max(left, least)));
  }
  const std::uint64_t needed = muster::connections_at_most(options);
  if (free >= needed) return {};
  const std::string what = "connections-max is " + std::to_string(options.connections_max) +
                           ", which takes " + std::to_string(needed + other_descriptors) +
                           " file descriptors; the limit (ulimit -Hn) is " + std::to_string(limit);
  if (configuration.connections_max_is_given) return what;
  lower_connections(options, free);
  if (muster::connections_at_most(options) > free) return what;
  log(muster::LogLevel::warning, what + "; reduced to " + std::to_string(options.connections_max));
  return {};
}

int exit_code_for(muster::ErrorCode code) {
  switch (code) {
    case muster::ErrorCode::invalid_argument: return musterd::exit_usage;
    case muster::ErrorCode::address_in_use: return musterd::exit_address_in_use;
    case muster::ErrorCode::permission_denied: return musterd::exit_not_allowed;
    default: return musterd::exit_failed;
  }
}

int tell_of_refusal(const Configuration& configuration, const muster::Error& error) {
  const int code = exit_code_for(error.code);
  if (code != musterd::exit_usage) return fail(code, error.message());
  std::cerr << musterd::refusal_of(configuration, error).text << std::flush;
  return code;
}

std::string text_of_ports(const muster::Server& server, const musterd::HttpFront* front) {
  std::string text = std::to_string(server.port()) + '\n';
  for (const std::uint16_t port : server.tcpstore_ports()) text += std::to_string(port) + '\n';
  if (front != nullptr) text += std::to_string(front->port()) + '\n';
  return text;
}

/// What of the file, the variables and the flags has changed since they were read last.
class Reloading {
 public:
  Reloading(int argc, const char* const* argv, Configuration& configuration)
      : argc_(argc), argv_(argv), configuration_(configuration) {}

  /// The settings, the credentials and what HTTP has of files are read again; the log says what has
  /// changed.
  void answer_hang_up(muster::Server& server, musterd::HttpFront* front) {
    if (!has_hung_up.exchange(false)) return;
    const bool has_credentials = !configuration_.server.credentials_file.empty();
    try {
      const bool has_file = has_file_to_read_again();
      const bool has_files_of_http = front != nullptr && front->reload();
      if (!has_file && !has_credentials && !has_files_of_http) {
        return server.log(muster::LogLevel::info,
                          "hang-up signal: there is nothing to reload; settings are read at the "
                          "start");
      }
      if (has_file) reload_settings(server);
      if (has_credentials) reload_credentials(server);
    } catch (const std::bad_alloc&) {  // who wants it sends the signal again
    }
  }

 private:
  /// A pipe would have to be written again, and is waited for.
  bool has_file_to_read_again() const {
    if (configuration_.file.empty()) return false;
    std::error_code ignored;
    const auto type = std::filesystem::status(configuration_.file, ignored).type();
    return type == std::filesystem::file_type::regular ||
           type == std::filesystem::file_type::not_found;  // that is told
  }

  void reload_settings(muster::Server& server) {
    auto read = musterd::read_configuration(argc_, argv_);
    if (const auto* const exit = std::get_if<musterd::Exit>(&read)) {
      return tell_of_mistake(server, exit->text);
    }
    auto& fresh = std::get<Configuration>(read);
    std::vector<std::string> names;
    for (const musterd::Setting& setting : musterd::settings()) {
      const auto before = configuration_.values.find(setting.name);
      const auto now = fresh.values.find(setting.name);
      const bool was_given = before != configuration_.values.end();
      const bool is_given = now != fresh.values.end();
      if (!was_given && !is_given) continue;
      const bool is_same = was_given && is_given && before->second == now->second;
      if (setting.is_of_server) {
        names.push_back(setting.name);
      } else if (!is_same) {
        server.log(muster::LogLevel::warning,
                   "hang-up signal: " + setting.name + " changes with a restart only");
      }
    }
    const std::string who = "the file " + muster::base::shown_unless_secret(configuration_.file) +
                            ", read again (SIGHUP)";
    const auto changed = server.change_settings(fresh.server, names, who);
    if (!changed) {
      return tell_of_mistake(server, musterd::refusal_of(fresh, changed.error()).text);
    }
    configuration_.given = std::move(fresh.given);
    configuration_.values = std::move(fresh.values);
    server.log(muster::LogLevel::info, "hang-up signal: the settings were read again");
  }

  /// As the start would have said it, without what is for a terminal.
  static void tell_of_mistake(const muster::Server& server, std::string text) {
    text = text.substr(0, text.find('\n'));
    const std::string detail = text.substr(std::min(text.size(), std::size(own_name) - 1));
    server.log(muster::LogLevel::error,
               "hang-up signal: the settings stay as they were: " + detail);
  }

  static void reload_credentials(muster::Server& server) {
    const auto reloaded = server.reload_credentials();
    if (reloaded) return;
    server.log(muster::LogLevel::error,
               "hang-up signal: the credentials stay as they were: " + reloaded.error().detail);
  }

  static constexpr char own_name[] = "musterd: ";

  int argc_;
  const char* const* argv_;
  Configuration& configuration_;
};

/// Nobody but root reads its memory, nor is any of it written when it crashes.
void hide_memory() { ::prctl(PR_SET_DUMPABLE, 0); }

/// The front of HTTP, if one is asked for.
muster::Result<std::unique_ptr<musterd::HttpFront>> start_front(const Configuration& configuration,
                                                                const muster::Logger& log) {
  if (configuration.http.address.empty()) return std::unique_ptr<musterd::HttpFront>();
  return musterd::HttpFront::start(configuration, log);
}

/// What can be connected to.
void tell_of_addresses(const Configuration& configuration, const muster::Server& server,
                       const musterd::HttpFront* front) {
  std::string text;
  for (const std::string& address : server.addresses())
    text += "musterd listening on " + address + '\n';
  for (std::size_t index = 0; index < server.tcpstore_ports().size(); ++index) {
    text += "musterd serves TCPStore in namespace " +
            configuration.server.tcpstore[index].name_space + " on port " +
            std::to_string(server.tcpstore_ports()[index]) + '\n';
  }
  if (front != nullptr) text += "musterd serves HTTP at " + front->url() + '\n';
  tools::write_text("musterd", text);  // it serves all the same
}

/// On this thread: there is no other one, unless the log or HTTP needs one.
///
/// log  until the server is there, which has a log of its own
int serve(Configuration& configuration, musterd::MemoryReserve& reserve, Reloading reloading,
          const muster::Logger& log) {
  bool has_failed = false;
  std::string failure = "memory was out";
  configuration.server.is_short_of_memory = [&reserve] { return reserve.is_spent(); };
  configuration.server.on_failure = [&](const muster::Error& why) {
    has_failed = true;
    try {
      failure = why.detail;
    } catch (const std::bad_alloc&) {  // it was logged, too
    }
  };
  std::string drained;  ///< why; empty: it is not
  musterd::HttpFront* http = nullptr;
  configuration.server.on_draining = [&http](const std::string& reason) {
    if (http != nullptr) http->drains(reason);
  };
  configuration.server.on_drained = [&drained](const std::string& reason) { drained = reason; };
  const muster::Server* running = nullptr;
  const muster::Logger log_of_front = [&](muster::LogLevel level, std::string_view line) {
    running == nullptr ? log(level, line) : running->log(level, line);
  };
  // Before there is anything that its thread should not have.
  const auto front = start_front(configuration, log_of_front);
  if (!front) return fail(exit_code_for(front.error().code), front.error().detail);
  http = front->get();
  const auto io_thread = muster::IoThread::create_for_caller();
  if (!io_thread) return fail(musterd::exit_failed, "the system has no descriptor left");
  configuration.server.io_thread = io_thread;
  auto server = muster::Server::start(configuration.server);
  if (!server) return tell_of_refusal(configuration, server.error());
  running = &*server;
  musterd::PortFile port_file;
  if (!configuration.port_file.empty() &&
      !port_file.write(configuration.port_file, text_of_ports(*server, http))) {
    const std::string reason = std::strerror(errno);
    return fail(musterd::exit_failed,
                "cannot write the port file " +
                    muster::base::shown_unless_secret(configuration.port_file) + ": " + reason);
  }
  if (http != nullptr) http->serves(*server);
  tell_of_addresses(configuration, *server, http);
  serving = io_thread.get();
  io_thread->run_until([&] {
    if (http != nullptr) http->turned();
    reloading.answer_hang_up(*server, http);
    return stop_signal != 0 || has_failed || !drained.empty();
  });
  serving = nullptr;
  if (http != nullptr) http->ends("it ends");
  if (!has_failed) {
    server->stop(!drained.empty()         ? drained
                 : stop_signal == SIGTERM ? "musterd was stopped (SIGTERM)"
                                          : "musterd was stopped (SIGINT)");
  }
  if (has_failed) return fail(musterd::exit_failed, failure);
  return musterd::exit_ok;
}

}  // namespace

int main(int argc, char** argv) {
  open_standard_descriptors();
  musterd::MemoryReserve reserve;
  await_signals();
  ::signal(SIGPIPE, SIG_IGN);
  auto read = musterd::read_configuration(argc, argv);
  if (const auto* const exit = std::get_if<musterd::Exit>(&read)) {
    if (exit->code != musterd::exit_ok) {
      std::cerr << exit->text << std::flush;
      return exit->code;
    }
    return tools::write_text("musterd", exit->text) ? musterd::exit_ok : musterd::exit_failed;
  }
  auto& configuration = std::get<Configuration>(read);
  if (!configuration.server.credentials_file.empty() ||
      !configuration.http.certificate_file.empty())
    hide_memory();
  musterd::LogQueue queue(STDERR_FILENO, configuration.log_format);
  const muster::Logger log = [&](muster::LogLevel level, std::string_view line) {
    const auto lowest = configuration.server.log_level;
    if (lowest && level >= *lowest) queue.add(level, line);
  };
  for (const std::string& variable : musterd::unread_variables()) {
    log(muster::LogLevel::warning, "nothing reads the variable " + variable);
  }
  const std::string problem = fit_connections(configuration, log);
  if (!problem.empty()) {
    const auto given = configuration.given.find("connections-max");
    return fail(musterd::exit_usage,
                given == configuration.given.end() ? problem : given->second + ": " + problem);
  }
  configuration.server.logger = [&queue](muster::LogLevel level, std::string_view line) {
    queue.add(level, line);  // the server knows what is logged
  };
  configuration.server.log_lines_dropped = [&queue] { return queue.dropped_count(); };
  return serve(configuration, reserve, Reloading(argc, argv, configuration), log);
}
