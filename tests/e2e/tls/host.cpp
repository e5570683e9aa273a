#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

#include "muster/store.h"

// A host of the library; library_test.py runs it. Its credential is that of the environment.
//
// host use ADDRESS      writes and reads; prints which libraries of TLS are in the process
// host lacking ADDRESS  the same where muster-tls is not to be found: prints the error
// host fork ADDRESS     as use, with children that exec and exit meanwhile
// host leave ADDRESS    as use, and ends with the store still open

namespace {

using namespace std::chrono_literals;

std::optional<muster::Store> kept;  // goes when the process ends, if at all

int fail(const muster::Error& error) {
  std::printf("%s\n", error.message().c_str());
  return 1;
}

int use(muster::Store& store) {
  const auto set = store.set("key", "value");
  if (!set.has_value()) return fail(set.error());
  const auto got = store.get("key", 10s);
  if (!got) return fail(got.error());
  return *got == "value" ? 0 : 1;
}

void print_libraries() {
  std::ifstream maps("/proc/self/maps");
  std::string last;
  for (std::string line; std::getline(maps, line);) {
    const auto slash = line.rfind('/');
    if (slash == line.npos) continue;
    const std::string name = line.substr(slash + 1);
    const bool is_of_tls = name.rfind("libssl", 0) == 0 || name.rfind("libcrypto", 0) == 0 ||
                           name.rfind("libmuster", 0) == 0;
    if (is_of_tls && name != last) std::printf("%s\n", name.c_str());
    if (is_of_tls) last = name;
  }
}

/// The test sees to it that nobody waits for one that hangs.
bool ends_well(pid_t child) {
  int status = 0;
  if (::waitpid(child, &status, 0) != child) return false;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int fork_some(muster::Store& store) {
  const pid_t executes = ::fork();
  if (executes == 0) {
    ::execl("/bin/true", "true", nullptr);
    ::_exit(1);
  }
  const pid_t exits = ::fork();
  if (exits == 0) std::exit(store.get("key").has_value() ? 1 : 0);
  if (!ends_well(executes) || !ends_well(exits)) return 1;
  return use(store);
}

}  // namespace

/// For an interpreter that has loaded this as a library.
extern "C" __attribute__((visibility("default"))) int muster_test_leave(const char* address) {
  auto store = muster::Store::connect(address, {}, 20s);
  if (!store) return fail(store.error());
  kept.emplace(*std::move(store));
  return use(*kept);
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string_view mode = argv[1];
  if (mode == "leave") return muster_test_leave(argv[2]);
  auto store = muster::Store::connect(argv[2], {}, 20s);
  if (!store) {
    const bool is_lacking = store.error().code == muster::ErrorCode::unsupported;
    return fail(store.error()) == 1 && mode == "lacking" && is_lacking ? 0 : 1;
  }
  if (mode == "lacking") return 1;
  const int used = mode == "fork" ? use(*store) + fork_some(*store) : use(*store);
  print_libraries();
  return used;
}
