#include "guardian_link.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "descendants.h"
#include "pid_namespace.h"
#include "start_process.h"

namespace musterrun {

namespace {

using muster::launch::PidNamespace;
using Descriptor = asio::posix::stream_descriptor;

/// In memory that only descriptors name.
int text_of(const ProcessStart& start, muster::base::FileHandle& file) {
  file = muster::base::FileHandle(::memfd_create("musterrun", MFD_CLOEXEC));
  if (!file) return errno;
  std::string bytes;
  for (const auto* const strings : {&start.arguments, &start.variables})
    for (const std::string& each : *strings) bytes.append(each.c_str(), each.size() + 1);
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = ::write(file.get(), bytes.data() + done, bytes.size() - done);
    if (count < 0) return errno;
    done += static_cast<std::size_t>(count);
  }
  return 0;
}

}  // namespace

ForkedGuardian fork_guardian(GuardianOptions options, PidNamespace wanted) {
  // What becomes of its children if the guardian is killed is for musterrun to end.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  ForkedGuardian guardian;
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
    guardian.problem = std::string("socketpair: ") + std::strerror(errno);
    return guardian;
  }
  guardian.socket = muster::base::FileHandle(pair[0]);
  options.socket = muster::base::FileHandle(pair[1]);
  const auto live = [&](muster::base::FileHandle outer_proc) {
    guardian.socket.close();
    options.outer_proc = std::move(outer_proc);
    return run_guardian(std::move(options));
  };
  if (wanted != PidNamespace::never) {
    NamespaceFork made = fork_into_namespace(wanted, live);
    guardian.pid = made.pid;
    guardian.problem = std::move(made.problem);
    if (guardian.pid > 0 || wanted == PidNamespace::always) return guardian;
  }
  guardian.pid = ::fork();
  if (guardian.pid == 0) ::_exit(live({}));
  if (guardian.pid < 0) guardian.problem = std::string("fork: ") + std::strerror(errno);
  return guardian;
}

GuardianLink::GuardianLink(asio::io_context& context, ForkedGuardian guardian,
                           std::function<void(const Report&)> on_report,
                           std::function<void(const std::string&)> on_lost)
    : guardian_(std::move(guardian)),
      reports_(context, ::fcntl(guardian_.socket.get(), F_DUPFD_CLOEXEC, 0)),
      on_report_(std::move(on_report)),
      on_lost_(std::move(on_lost)) {
  await();
}

void GuardianLink::await() {
  reports_.async_wait(Descriptor::wait_read, [this](const asio::error_code& failed) {
    if (failed || !guardian_.socket) return;
    take();
    if (guardian_.socket) await();
  });
}

void GuardianLink::take() {
  for (;;) {
    bool is_over = false;
    std::array<muster::base::FileHandle, start_descriptor_count> none;
    const auto report = receive_message<Report>(guardian_.socket.get(), none, is_over);
    if (is_over) return lose();
    if (!report) return;
    on_report_(*report);
    if (!guardian_.socket) return;
  }
}

void GuardianLink::lose() {
  guardian_.socket.close();
  reports_.close();
  int status = 0;
  std::string how = "is gone";
  if (::waitpid(guardian_.pid, &status, 0) == guardian_.pid && WIFSIGNALED(status))
    how = "was ended by signal " + std::to_string(WTERMSIG(status));
  const auto left = kill_descendants();
  if (!left.empty()) how += "; " + std::to_string(left.size()) + " processes cannot be killed";
  on_lost_("the guardian (pid " + std::to_string(guardian_.pid) + ") " + how);
}

int GuardianLink::start(int local_rank, const ProcessStart& start) {
  muster::base::FileHandle text;
  if (const int error = text_of(start, text); error != 0) return error;
  Order order;
  order.local_rank = local_rank;
  order.argument_count = static_cast<std::uint32_t>(start.arguments.size());
  order.string_count = static_cast<std::uint32_t>(start.arguments.size() + start.variables.size());
  const int descriptors[] = {text.get(), start.input, start.output, start.errors};
  send(order, descriptors, start_descriptor_count);
  return 0;
}

/// Waits until the guardian, which never waits for musterrun, has read the orders before. If it is
/// gone that is heard of where its reports are taken.
void GuardianLink::send(const Order& order, const int* descriptors, std::size_t count) {
  while (!send_message(guardian_.socket.get(), order, descriptors, count)) {
    pollfd ready{guardian_.socket.get(), POLLOUT, 0};
    if (errno == EAGAIN) {
      ::poll(&ready, 1, -1);
    } else if (errno == ETOOMANYREFS) {
      ::poll(nullptr, 0, 1);  // there is room, and nothing tells when fewer are on the way
    } else {
      return;
    }
  }
}

void GuardianLink::forward(int signal) {
  Order order;
  order.kind = Order::Kind::forward;
  order.signal = signal;
  send(order, nullptr, 0);
}

void GuardianLink::end(std::chrono::nanoseconds grace, bool were_told) {
  Order order;
  order.kind = Order::Kind::end;
  order.grace_ns = grace.count();
  order.were_told = were_told ? 1 : 0;
  send(order, nullptr, 0);
}

void GuardianLink::close() {
  guardian_.socket.close();
  reports_.close();
  ::waitpid(guardian_.pid, nullptr, 0);
}

}  // namespace musterrun
