// musterrun: starts the processes of a job, and ends all of them together.

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <random>

#include "command_line.h"
#include "launcher.h"
#include "own_folder.h"
#include "start_process.h"

extern char** environ;

namespace {

std::string draw_job_id() {
  std::random_device random;
  char text[32];
  std::snprintf(text, sizeof text, "%08x%08x", random(), random());
  return text;
}

void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

int main(int argc, char** argv) {
  auto read = musterrun::read_command_line(argc, argv);
  if (const auto* const exit = std::get_if<musterrun::Exit>(&read)) {
    (exit->code == 0 ? std::cout : std::cerr) << exit->text << std::flush;
    return exit->code;
  }
  auto& line = std::get<musterrun::CommandLine>(read);
  for (const std::string& notice : line.notices) std::cerr << "musterrun: " << notice << '\n';
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGCHLD, SIG_DFL);
  musterrun::remember_descriptor_limit();
  raise_descriptor_limit();
  musterrun::LauncherSetup setup;
  const auto own_folder = musterrun::OwnFolder::make();
  if (!own_folder) {
    std::perror("musterrun: no folder can be made for temporary files (see TMPDIR)");
    return 1;
  }
  setup.own_folder = own_folder->path();
  musterrun::GuardianOptions guardian;
  guardian.shutdown_timeout = line.options.shutdown_timeout;
  guardian.own_folder = setup.own_folder;
  setup.guardian = musterrun::fork_guardian(std::move(guardian));
  if (setup.guardian.pid < 0) {
    std::perror("musterrun: no guardian can be started");
    return 1;
  }
  for (char** variable = environ; *variable != nullptr; ++variable)
    setup.environment.emplace_back(*variable);
  setup.job_id = line.options.job_id.empty() ? draw_job_id() : line.options.job_id;
  setup.options = std::move(line.options);
  setup.placement = line.placement;
  return musterrun::run_launcher(std::move(setup));
}
