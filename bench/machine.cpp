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

}  // namespace

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
      {"compiler", std::string("g++-compatible ") + __VERSION__},
      {"somaxconn", first_line_of("/proc/sys/net/core/somaxconn")},
      {"load_at_start", load.substr(0, load.find(' '))}};
}

}  // namespace muster::bench
