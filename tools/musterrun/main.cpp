// musterrun: starts the ranks of a job on this node, and ends all of them together.

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <random>
#include <string_view>

#include "command_line.h"
#include "dry_run.h"
#include "launch/placement.h"
#include "launcher.h"
#include "muster/log.h"
#include "own_folder.h"
#include "start_process.h"
#include "support/standard_output.h"

namespace {

using muster::launch::LaunchOptions;
using muster::launch::PidNamespace;
using muster::launch::Placement;

muster::launch::Variables own_environment() {
  muster::launch::Variables variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals == text.npos) continue;
    variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

void tell_notices(const LaunchOptions& options, const Placement& placement) {
  for (const std::string& notice : options.notices)
    std::cerr << "musterrun: " << muster::printable(notice) << '\n';
  for (const std::string& warning : placement.warnings)
    std::cerr << "musterrun: " << warning << '\n';
}

/// Hexadecimal digits that nobody else has drawn.
std::string draw_name() {
  std::random_device random;
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%08x%08x", random(), random());
  return text.data();
}

void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

/// The Python of the virtual environment that this program is called from, as by
/// `venv/bin/musterrun`, else the first one in PATH.
std::string python_of(std::string_view called_as) {
  const std::size_t slash = called_as.rfind('/');
  if (slash == called_as.npos) return "python3";
  const std::string folder(called_as.substr(0, slash));
  const std::string python = folder + "/python3";
  const bool is_environment = ::access((folder + "/../pyvenv.cfg").c_str(), F_OK) == 0;
  return is_environment && ::access(python.c_str(), X_OK) == 0 ? python : "python3";
}

/// So that no other descriptor gets their numbers, which ranks would read and write as theirs. What
/// stands for a closed standard output refuses to be written: nothing is lost without a word.
bool open_closed_standard_streams() {
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    const int access = number == STDOUT_FILENO ? O_RDONLY : O_RDWR;
    if (::fcntl(number, F_GETFD) < 0 && ::open("/dev/null", access) != number) return false;
  }
  return true;
}

/// A signal that is ignored here stays so, such as SIGHUP under nohup, unless somebody asked for
/// it.
void leave_ignored_signals(LaunchOptions& options) {
  if (options.given.count("signals-to-handle") != 0) return;
  const auto is_ignored = [](int number) {
    struct sigaction now {};
    return ::sigaction(number, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
  };
  auto& signals = options.signals;
  signals.erase(std::remove_if(signals.begin(), signals.end(), is_ignored), signals.end());
}

int fail_without_folder(const std::string& place) {
  std::cerr << "musterrun: no folder for temporary files can be made in "
            << muster::printable(place) << ": " << std::strerror(errno)
            << "; set TMPDIR to a folder that this user can write\n";
  return 1;
}

int fail_without_guardian(const musterrun::LauncherSetup& setup, PidNamespace wanted) {
  std::cerr << "musterrun: the guardian, which starts the ranks, cannot be started: "
            << setup.guardian.problem << '\n';
  if (wanted == PidNamespace::always)
    std::cerr << "A PID namespace was asked for: --pid-namespace auto goes on without one.\n";
  setup.own_folder->remove();
  return 1;
}

int write(const std::string& text) {
  return tools::write_text("musterrun", text) ? musterrun::exit_ok : 1;
}

/// A certificate that an option names counts before the key, or the other certificate, of the
/// environment.
void set_variables(const LaunchOptions& options, muster::launch::Variables& environment) {
  if (options.variables.count("MUSTER_CERTIFICATE_FILE") != 0) {
    for (const char* name :
         {"MUSTER_CREDENTIAL_FILE", "MUSTER_CREDENTIAL", "MUSTER_CERTIFICATE_KEY_FILE"}) {
      ::unsetenv(name);
      environment.erase(name);
    }
  }
  for (const auto& [name, value] : options.variables) {
    ::setenv(name.c_str(), value.c_str(), 1);
    environment.insert_or_assign(name, value);
  }
}

int launch(LaunchOptions options, Placement placement, muster::launch::Variables environment) {
  leave_ignored_signals(options);
  ::signal(SIGCHLD, SIG_DFL);
  musterrun::remember_descriptor_limit();
  raise_descriptor_limit();
  const std::string place = musterrun::OwnFolder::usual_place();
  const auto own_folder = musterrun::OwnFolder::make(place);
  if (!own_folder) return fail_without_folder(place);
  musterrun::LauncherSetup setup;
  setup.own_folder = &*own_folder;
  musterrun::GuardianOptions guardian;
  guardian.shutdown_timeout = options.shutdown_timeout;
  guardian.own_folder = setup.own_folder;
  setup.guardian = musterrun::fork_guardian(std::move(guardian), options.pid_namespace);
  if (setup.guardian.pid < 0) return fail_without_guardian(setup, options.pid_namespace);
  setup.random = draw_name();
  setup.job_id = options.job_id.empty() ? setup.random : options.job_id;
  setup.options = std::move(options);
  setup.placement = std::move(placement);
  setup.environment = std::move(environment);
  return musterrun::run_launcher(std::move(setup));
}

}  // namespace

int main(int argc, char** argv) {
  if (!open_closed_standard_streams()) return 1;
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);
  muster::launch::Variables environment = own_environment();
  auto read = musterrun::read_command_line(argc, argv, environment);
  if (const auto* const exit = std::get_if<musterrun::Exit>(&read)) {
    if (exit->code == musterrun::exit_ok) return write(exit->text);
    std::cerr << exit->text << std::flush;
    return exit->code;
  }
  auto& options = std::get<LaunchOptions>(read);
  set_variables(options, environment);
  options.program.python = python_of(argc > 0 ? argv[0] : "");
  Placement placement;
  if (options.rendezvous.endpoint.empty())
    placement = muster::launch::placement_of(options).value();
  tell_notices(options, placement);
  if (options.dry_run) {
    return write(musterrun::dry_run(options, environment));
  }
  return launch(std::move(options), std::move(placement), std::move(environment));
}
