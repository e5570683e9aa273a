// What `gpu.py` runs on a machine with a GPU: the server, the ranks of a check, each a process, and
// who says what there is.
//
//     nccl_gpu devices nccl=PATH cuda=PATH   the devices and libraries, as JSON
//     nccl_gpu server                        a server; prints its address
//     nccl_gpu PART NAME=VALUE...            one rank of a part of parts.h

#include <dlfcn.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <map>
#include <string>

#include "muster/server.h"
#include "nccl/functions.h"
#include "nccl/gpu/parts.h"

namespace muster::test::gpu {
namespace {

constexpr int skipped = 77;
/// Whatever happens, a process does not stay longer.
constexpr unsigned life_s = 600;

using Settings = std::map<std::string, std::string>;
using Part = void (*)(Rank&);

const std::map<std::string, Part>& parts() {
  static const std::map<std::string, Part> all{
      {"device_of_thread", device_of_thread},
      {"second_device", second_device},
      {"many_calls", many_calls},
      {"refusal_bare", refusal_bare},
      {"refusal", refusal},
      {"throw_in_group", throw_in_group},
      {"abort_frees_stream", abort_frees_stream},
      {"abort_together", abort_together},
      {"killed_peer", killed_peer},
      {"killed_peer_of_nccl", killed_peer_of_nccl},
      {"ring", ring},
      {"close_with_work", close_with_work},
      {"close_unmatched", close_unmatched},
      {"close_with_graph", close_with_graph},
      {"close_after_regroup", close_after_regroup},
      {"cycles", cycles},
      {"cycles_bare", cycles_bare},
      {"many_alive", many_alive},
      {"failed_attempts", failed_attempts},
      {"capture", capture},
      {"bandwidth", bandwidth},
  };
  return all;
}

Settings settings_of(int argc, char** argv) {
  Settings settings;
  for (int index = 2; index < argc; ++index) {
    const std::string text = argv[index];
    const std::size_t equals = text.find('=');
    settings[text.substr(0, equals)] = equals == std::string::npos ? "" : text.substr(equals + 1);
  }
  return settings;
}

int serve() {
  ServerOptions options;
  options.standalone = true;
  const Server server = require(Server::start(options));
  std::cout << server.addresses().front() << std::endl;
  for (;;) ::pause();
}

std::string quoted_text(const std::string& text) {
  std::string quoted = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') quoted += '\\';
    if (static_cast<unsigned char>(letter) >= ' ') quoted += letter;
  }
  return quoted + '"';
}

std::string device_text(const Driver& driver, int ordinal) {
  int handle = 0;
  std::array<char, 128> name{};
  must(driver.device_get(&handle, ordinal), "cuDeviceGet");
  must(driver.device_name(name.data(), static_cast<int>(name.size() - 1), handle),
       "cuDeviceGetName");
  const OnDevice current(driver, ordinal);
  std::size_t free_bytes = 0;
  std::size_t all_bytes = 0;
  must(driver.memory(&free_bytes, &all_bytes), "cuMemGetInfo");
  return "{\"name\": " + quoted_text(name.data()) +
         ", \"free_bytes\": " + std::to_string(free_bytes) +
         ", \"bytes\": " + std::to_string(all_bytes) + "}";
}

void print_devices(Settings settings) {
  const Driver& driver = load_driver(settings["cuda"]);
  int count = 0;
  must(driver.device_count(&count), "cuDeviceGetCount");
  if (count == 0) throw NotRun("the CUDA driver sees no device");
  std::string devices;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    devices += (ordinal == 0 ? "" : ", ") + device_text(driver, ordinal);
  }
  int driver_version = 0;
  must(driver.version(&driver_version), "cuDriverGetVersion");
  const auto nccl = nccl_internal::load_nccl(settings["nccl"]);
  if (!nccl) throw NotRun(nccl.error().detail);
  int nccl_version = 0;
  must(nccl->get_version(&nccl_version), "ncclGetVersion");
  Dl_info file{};
  if (::dladdr(reinterpret_cast<const void*>(nccl->get_version), &file) == 0) {
    throw Failure("the file of libnccl is not known");
  }
  std::cout << "{\"devices\": [" << devices << "], \"cuda\": " << driver_version
            << ", \"nccl\": " << quoted_text(nccl_internal::version_text(nccl_version))
            << ", \"nccl_file\": " << quoted_text(file.dli_fname) << "}" << std::endl;
}

int run_part(Part part, const Settings& settings) {
  Rank rank(settings);
  try {
    part(rank);
  } catch (const Failure& failure) {
    rank.expect(false, failure.what());
  }
  return rank.holds() ? 0 : 1;
}

int run(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "server") return serve();
  if (what == "devices") {
    print_devices(settings_of(argc, argv));
    return 0;
  }
  const auto part = parts().find(what);
  if (part == parts().end()) {
    std::cerr << "nccl_gpu devices | server | PART NAME=VALUE...; there is no part " << what
              << '\n';
    return 2;
  }
  return run_part(part->second, settings_of(argc, argv));
}

/// At once: what hangs on a device would be waited for.
[[noreturn]] void leave(int code) {
  std::cout.flush();
  std::_Exit(code);
}

}  // namespace
}  // namespace muster::test::gpu

int main(int argc, char** argv) {
  using namespace muster::test::gpu;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::alarm(life_s);
  try {
    leave(run(argc, argv));
  } catch (const NotRun& reason) {
    std::cout << "not_run|" << reason.what() << std::endl;
    leave(skipped);
  } catch (const std::exception& error) {
    std::cout << "fails|" << error.what() << std::endl;
    leave(1);
  }
}
