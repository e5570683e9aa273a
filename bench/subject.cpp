#include "subject.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "encryption.h"

namespace muster::bench {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr int starts_max = 5;  // a free port may be taken by somebody else meanwhile

std::uint16_t free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const raw = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof(address);
  const bool is_bound = ::bind(fd, raw, size) == 0 && ::getsockname(fd, raw, &size) == 0;
  ::close(fd);
  if (!is_bound) throw std::runtime_error("no port is free");
  return ntohs(address.sin_port);
}

bool can_connect(std::uint16_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool is_connected =
      ::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  ::close(fd);
  return is_connected;
}

cpu_set_t allowed_cores() {
  static const cpu_set_t at_start = [] {
    cpu_set_t set;
    CPU_ZERO(&set);
    ::sched_getaffinity(0, sizeof(set), &set);
    return set;
  }();
  return at_start;
}

/// Those of whom nobody can hear which one they have taken.
bool is_told_its_port(Kind kind) {
  return kind == Kind::redis || kind == Kind::memcached || kind == Kind::etcd;
}

/// A cluster of one, with an empty folder of its own.
std::vector<std::string> etcd_command(const Programs& programs, std::uint16_t port, Wire wire) {
  const std::string url =
      (wire == Wire::encrypted ? "https://127.0.0.1:" : "http://127.0.0.1:") + std::to_string(port);
  return {programs.etcd,
          "--data-dir",
          programs.folder + "/etcd-" + std::to_string(port),
          "--unsafe-no-fsync",
          "--listen-client-urls",
          url,
          "--advertise-client-urls",
          url,
          "--listen-peer-urls",
          "http://127.0.0.1:0",
          "--logger",
          "zap",
          "--log-level",
          "error",
          "--log-outputs",
          programs.folder + "/etcd.log"};
}

int nth_core(int index) {
  const cpu_set_t set = allowed_cores();
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores[(cores.size() + static_cast<std::size_t>(index)) % cores.size()];
}

}  // namespace

void pin_to(int core) {
  allowed_cores();
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  if (::sched_setaffinity(0, sizeof(set), &set) != 0) throw std::runtime_error("cannot pin");
}

int server_core() { return nth_core(-1); }
int client_core() { return nth_core(0); }

Subject::Subject(Kind kind, const Programs& programs, int core, std::vector<std::string> flags,
                 Wire wire)
    : kind_(kind), flags_(std::move(flags)), wire_(wire) {
  cpu_set_t before;
  ::sched_getaffinity(0, sizeof(before), &before);
  pin_to(core);  // the child inherits it, with all its threads
  start(programs);
  ::sched_setaffinity(0, sizeof(before), &before);
}

/// Sessions that send no heartbeats, values of 64 MiB in numbers, a million keys.
std::vector<std::string> Subject::musterd_command(const Programs& programs) const {
  std::vector<std::string> command = {programs.musterd,
                                      "--listen",
                                      "127.0.0.1:0",
                                      "--log-level",
                                      "silent",
                                      "--session-timeout",
                                      "600s",
                                      "--heartbeat",
                                      "60s",
                                      "--memory-bytes-max",
                                      "4GiB",
                                      "--value-bytes-max",
                                      "64MiB",
                                      "--connections-max",
                                      "16384",
                                      "--round-bytes-max",
                                      "1GiB"};
  if (kind_ == Kind::muster_tcpstore) {
    command.insert(command.end(), {"--tcpstore", "127.0.0.1:0", "--tcpstore-idle-lifetime", "1h"});
  }
  return command;
}

std::vector<std::string> Subject::command(const Programs& programs) const {
  switch (kind_) {
    case Kind::echo: return {programs.echo_server};
    case Kind::muster:
    case Kind::muster_tcpstore: return musterd_command(programs);
    case Kind::redis:
      return {programs.redis,
              "--port",
              std::to_string(port_),
              "--bind",
              "127.0.0.1",
              "--save",
              "",
              "--appendonly",
              "no",
              "--dir",
              programs.folder,
              "--tcp-backlog",
              "65535",
              "--maxclients",
              "16384",
              "--daemonize",
              "no",
              "--logfile",
              programs.folder + "/redis.log"};
    case Kind::memcached:
      return {programs.memcached,
              "-l",
              "127.0.0.1",
              "-p",
              std::to_string(port_),
              "-t",
              "1",
              "-m",
              "4096",
              "-c",
              "16384",
              "-b",
              "65535",
              "-I",
              "128m",
              "-U",
              "0",
              "-u",
              "root"};
    case Kind::tcpstore: return {programs.python, programs.tcpstore_server};
    case Kind::tcpstore_libuv: return {programs.libuv_python, programs.tcpstore_server, "libuv"};
    case Kind::etcd: return etcd_command(programs, port_, wire_);
  }
  return {};
}

void Subject::start(const Programs& programs) {
  for (int attempt = 0; attempt < starts_max; ++attempt) {
    if (is_told_its_port(kind_)) port_ = free_port();
    test::Process::Options options;
    options.command = command(programs);
    options.command.insert(options.command.end(), flags_.begin(), flags_.end());
    if (wire_ == Wire::encrypted) {
      const Encryption how = make_encryption(kind_, programs, port_);
      options.command.insert(options.command.end(), how.flags.begin(), how.flags.end());
      tls_ = how.client;
    }
    options.take_errors = false;
    process_ = std::make_unique<test::Process>(options);
    learn_port();
    const auto until = Clock::now() + 20s;
    while (port_ != 0 && Clock::now() < until && !process_->wait(0ms).has_ended) {
      if (can_connect(port_)) return;
      std::this_thread::sleep_for(5ms);
    }
  }
  throw std::runtime_error(name() + " does not start");
}

/// Those that choose it themselves end a line that they print with it: the first one, musterd's
/// port for TCPStore the second.
void Subject::learn_port() {
  if (is_told_its_port(kind_)) return;
  auto line = process_->read_line();
  if (kind_ == Kind::muster_tcpstore) line = process_->read_line();
  if (!line) throw std::runtime_error(name() + " does not say where it listens");
  const auto before = line->find_last_not_of("0123456789");
  port_ = static_cast<std::uint16_t>(
      std::stoi(before == std::string::npos ? *line : line->substr(before + 1)));
}

/// Their folders in /proc.
std::vector<std::string> Subject::threads() const {
  std::vector<std::string> folders;
  const auto tasks = "/proc/" + std::to_string(process_->pid()) + "/task";
  for (const auto& task : std::filesystem::directory_iterator(tasks)) {
    folders.push_back(task.path().string());
  }
  return folders;
}

double Subject::processor_us() const {
  double sum_us = 0;
  for (const std::string& thread : threads()) {
    std::ifstream stat(thread + "/schedstat");
    double nanoseconds = 0;
    stat >> nanoseconds;
    sum_us += nanoseconds / 1e3;
  }
  return sum_us;
}

double Subject::switches() const {
  double sum = 0;
  for (const std::string& thread : threads()) {
    std::ifstream lines(thread + "/status");
    for (std::string line; std::getline(lines, line);) {
      if (line.find("voluntary_ctxt_switches:") == std::string::npos) continue;
      sum += std::stod(line.substr(line.find(':') + 1));
    }
  }
  return sum;
}

double Subject::resident_bytes() const {
  std::ifstream statm("/proc/" + std::to_string(process_->pid()) + "/statm");
  double all_pages = 0;
  double resident_pages = 0;
  double shared_pages = 0;
  statm >> all_pages >> resident_pages >> shared_pages;
  return (resident_pages - shared_pages) * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

void Subject::settle() const {
  constexpr int quiet_looks = 3;
  const auto end = Clock::now() + 30s;
  double before_us = processor_us();
  for (int quiet = 0; quiet < quiet_looks && Clock::now() < end;) {
    std::this_thread::sleep_for(2ms);
    const double now_us = processor_us();
    // A server that has nothing to do may still tick.
    quiet = now_us - before_us < 100 ? quiet + 1 : 0;
    before_us = now_us;
  }
}

}  // namespace muster::bench
