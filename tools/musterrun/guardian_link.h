#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>

#include "base/file_handle.h"
#include "guardian.h"
#include "launch/options.h"
#include "messages.h"

namespace musterrun {

/// A guardian that was forked, as musterrun holds it.
struct ForkedGuardian {
  muster::base::FileHandle socket;
  pid_t pid = -1;       ///< -1: there is none
  std::string problem;  ///< why there is none, or no PID namespace
};

/// Forks the guardian, before this process has threads. In the guardian it does not return.
ForkedGuardian fork_guardian(GuardianOptions options, muster::launch::PidNamespace wanted);

/// What a rank is started with.
struct ProcessStart {
  std::vector<std::string> arguments;
  std::vector<std::string> variables;  ///< "NAME=value"
  int input = -1;
  int output = -1;
  int errors = -1;
};

/// Gives the guardian its orders, and hears its reports.
///
/// threads  that of the context
class GuardianLink {
 public:
  /// on_report  is called with each report
  /// on_lost    is called once, when the guardian is gone; all processes are, too, then, but those
  ///            that it tells of
  GuardianLink(asio::io_context& context, ForkedGuardian guardian,
               std::function<void(const Report&)> on_report,
               std::function<void(const std::string& how)> on_lost);

  /// returns  errno: what it is started with cannot be kept; 0: it is ordered
  int start(int local_rank, const ProcessStart& start);
  void forward(int signal);
  void end(std::chrono::nanoseconds grace, bool were_told);
  /// Without orders any more, it ends.
  void close();

 private:
  void send(const Order& order, const int* descriptors, std::size_t count);
  void await();
  void take();
  void lose();

  ForkedGuardian guardian_;
  asio::posix::stream_descriptor reports_;
  std::function<void(const Report&)> on_report_;
  std::function<void(const std::string&)> on_lost_;
};

}  // namespace musterrun
