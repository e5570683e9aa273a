// musterd: a Muster server in a process of its own.

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <new>

#include "flags.h"
#include "given.h"
#include "log_queue.h"
#include "memory_reserve.h"
#include "muster/io_thread.h"
#include "muster/server.h"
#include "settings.h"

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

/// No socket gets the number of a standard stream that is closed.
void open_standard_descriptors() {
  for (int descriptor = 0; descriptor <= STDERR_FILENO; ++descriptor) {
    if (::fcntl(descriptor, F_GETFD) == -1) ::open("/dev/null", O_RDWR);
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

/// Fits the numbers of connections to the descriptors that there are, unless they were asked for.
/// Newcomers take what those with sessions leave, and have some in any case.
///
/// returns  what is wrong; empty: nothing
std::string fit_connections(Configuration& configuration, musterd::LogQueue* log) {
  std::uint32_t& connections_max = configuration.server.connections_max;
  std::uint32_t& newcomers_max = configuration.server.hello_connections_max;
  const std::uint64_t limit = raise_descriptor_limit();
  const std::uint64_t free = limit - std::min(limit, other_descriptors);
  if (!configuration.hello_connections_max_is_given) {
    const std::uint64_t left = free - std::min<std::uint64_t>(free, connections_max);
    const std::uint64_t least = std::min<std::uint64_t>(newcomers_least, free / 4);
    newcomers_max =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(newcomers_max, std::max(left, least)));
  }
  const std::uint64_t needed = std::uint64_t{connections_max} + newcomers_max;
  if (free >= needed) return {};
  const std::string what = "connections-max is " + std::to_string(connections_max) +
                           ", which takes " + std::to_string(needed + other_descriptors) +
                           " file descriptors; the limit (ulimit -Hn) is " + std::to_string(limit);
  if (configuration.connections_max_is_given || free <= newcomers_max) return what;
  connections_max = static_cast<std::uint32_t>(free - newcomers_max);
  if (log != nullptr) {
    log->add(muster::LogLevel::warning, what + "; reduced to " + std::to_string(connections_max));
  }
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

/// Appears whole or not at all: who waits for it finds the port in it.
bool write_port_file(const std::string& path, std::uint16_t port) {
  const std::string fresh = path + ".new";
  {
    std::ofstream file(fresh, std::ios::trunc);
    file << port << '\n';
    if (!file.flush()) return false;
  }
  return std::rename(fresh.c_str(), path.c_str()) == 0;
}

/// The credentials are read again; the server says what has changed.
void answer_hang_up(muster::Server& server, const Configuration& configuration) {
  if (!has_hung_up.exchange(false)) return;
  const muster::Logger& log = configuration.server.logger;
  try {
    if (configuration.server.credentials_file.empty()) {
      if (!log) return;
      return log(muster::LogLevel::info,
                 "hang-up signal: there is nothing to reload; settings are read at the start");
    }
    const auto reloaded = server.reload_credentials();
    if (reloaded || !log) return;
    log(muster::LogLevel::error,
        "hang-up signal: the credentials stay as they were: " + reloaded.error().detail);
  } catch (const std::bad_alloc&) {  // the file is looked at again when it changes
  }
}

/// Nobody but root reads its memory, nor is any of it written when it crashes.
void hide_memory() { ::prctl(PR_SET_DUMPABLE, 0); }

/// On this thread: there is no other one, unless the log needs one.
int serve(Configuration& configuration, musterd::MemoryReserve& reserve) {
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
  const auto io_thread = muster::IoThread::create_for_caller();
  if (!io_thread) return fail(musterd::exit_failed, "the system has no descriptor left");
  configuration.server.io_thread = io_thread;
  auto server = muster::Server::start(configuration.server);
  if (!server) return tell_of_refusal(configuration, server.error());
  if (!configuration.port_file.empty() &&
      !write_port_file(configuration.port_file, server->port())) {
    return fail(musterd::exit_failed, "cannot write the port file " + configuration.port_file);
  }
  for (const std::string& address : server->addresses()) {
    std::cout << "musterd listening on " << address << '\n';
  }
  std::cout.flush();
  serving = io_thread.get();
  io_thread->run_until([&] {
    answer_hang_up(*server, configuration);
    return stop_signal != 0 || has_failed;
  });
  serving = nullptr;
  if (!has_failed) {
    server->stop(stop_signal == SIGTERM ? "musterd was stopped (SIGTERM)"
                                        : "musterd was stopped (SIGINT)");
  }
  if (!configuration.port_file.empty()) ::unlink(configuration.port_file.c_str());
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
    (exit->code == musterd::exit_ok ? std::cout : std::cerr) << exit->text << std::flush;
    return exit->code;
  }
  auto& configuration = std::get<Configuration>(read);
  if (!configuration.server.credentials_file.empty()) hide_memory();
  std::optional<musterd::LogQueue> log;
  if (configuration.log_level) log.emplace(STDERR_FILENO, *configuration.log_level);
  for (const std::string& variable :
       log ? musterd::unread_variables() : std::vector<std::string>()) {
    log->add(muster::LogLevel::warning, "nothing reads the variable " + variable);
  }
  const std::string problem = fit_connections(configuration, log ? &*log : nullptr);
  if (!problem.empty()) {
    const auto given = configuration.given.find("connections-max");
    return fail(musterd::exit_usage,
                given == configuration.given.end() ? problem : given->second + ": " + problem);
  }
  if (log) {
    configuration.server.logger = [&log](muster::LogLevel level, std::string_view line) {
      log->add(level, line);
    };
  }
  return serve(configuration, reserve);
}
