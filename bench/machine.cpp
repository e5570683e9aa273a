#include "machine.h"

#include <sys/utsname.h>
#include <time.h>

#include <cstdio>
#include <fstream>
#include <thread>

namespace muster::bench {
namespace {

/// What follows "name :" in a file such as /proc/cpuinfo.
std::string field_of(const char* file, const std::string& name) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    const auto colon = line.find(':');
    if (!line.starts_with(name) || colon == std::string::npos) continue;
    const auto begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

std::string first_line_of(const char* file) {
  std::ifstream lines(file);
  std::string line;
  std::getline(lines, line);
  return line;
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  tm utc{};
  ::gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M UTC", &utc);
  return text;
}

/// The first line that it prints.
std::string answer_of(std::vector<std::string> command) {
  test::Process::Options options;
  options.command = std::move(command);
  options.take_errors = false;
  return test::Process(options).read_line().value_or("");
}

std::string compiler() {
#ifdef __clang__
  return std::string("clang ") + __clang_version__;
#else
  return std::string("g++ ") + __VERSION__;
#endif
}

}  // namespace

Json describe_programs(const Programs& programs) {
  Json versions;
  versions["muster"] = answer_of({programs.musterd, "--version"});
  if (!programs.redis.empty()) versions["redis"] = answer_of({programs.redis, "--version"});
  if (!programs.memcached.empty()) {
    versions["memcached"] = answer_of({programs.memcached, "--version"});
  }
  if (!programs.etcd.empty()) versions["etcd"] = answer_of({programs.etcd, "--version"});
  if (!programs.tcpstore_server.empty()) {
    versions["tcpstore"] =
        "torch " + answer_of({programs.python, "-c", "import torch; print(torch.__version__)"});
  }
  return versions;
}

Json describe_machine() {
  utsname system{};
  ::uname(&system);
  const std::string load = first_line_of("/proc/loadavg");
  return {
      {"date", today()},
      {"processor", field_of("/proc/cpuinfo", "model name")},
      {"cores", std::thread::hardware_concurrency()},
      {"is_virtual", field_of("/proc/cpuinfo", "flags").find("hypervisor") != std::string::npos},
      {"memory", field_of("/proc/meminfo", "MemTotal")},
      {"system", std::string(system.sysname) + ' ' + system.release},
      {"compiler", compiler()},
      {"somaxconn", first_line_of("/proc/sys/net/core/somaxconn")},
      {"congestion control", first_line_of("/proc/sys/net/ipv4/tcp_congestion_control")},
      {"load_at_start", load.substr(0, load.find(' '))}};
}

}  // namespace muster::bench
