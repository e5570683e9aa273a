#include "ask.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iostream>

namespace musterctl {

using muster::Duration;
using muster::Result;
using muster::Store;
using Clock = std::chrono::steady_clock;

Result<Store> connect(const Common& common, muster::Role role, Duration wait_for_server,
                      Duration timeout) {
  muster::StoreOptions options;
  options.name_space = common.name_space;
  options.label = "musterctl";
  options.credential_file = common.credential_file;
  options.certificate_file = common.certificate_file;
  options.certificate_key_file = common.certificate_key_file;
  options.authorities_file = common.authorities_file;
  options.server_name = common.server_name;
  options.role = role;
  options.wait_for_server = wait_for_server;
  return Store::connect(common.server, std::move(options), wait_for_server + timeout);
}

Result<Answer> ask(const Command& command, Store& store, const Common& common, Duration timeout) {
  Run run{store, common, timeout, Clock::now() + timeout};
  return command(run);
}

Written write_out(std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(STDOUT_FILENO, text.data(), text.size());
    if (count >= 0) {
      text.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno == EPIPE) {
      return Written::nobody_reads;
    } else if (errno != EINTR) {
      return Written::failed;
    }
  }
  return Written::all;
}

namespace {

Answer answer_without_server(const muster::Error& error, Kind kind, const Common& common) {
  Answer answer = answer_of(error, kind);
  const bool is_there = error.code != muster::ErrorCode::unavailable;
  if (!is_there && common.wait_for_server == Duration::zero()) {
    answer.complaint += ", or wait for it with --wait-for-server DURATION";
  }
  return answer;
}

/// The session ends in order before a word is printed, whoever reads.
Answer answer_once(const Chosen& chosen, const Common& common) {
  if (chosen.local) return chosen.local(common);
  const Duration timeout = common.timeout.value_or(std::chrono::seconds(10));
  const auto start = Clock::now();
  auto store = connect(common, chosen.role, common.wait_for_server, timeout);
  if (!store) return answer_without_server(store.error(), chosen.kind, common);
  const auto taken = std::chrono::duration_cast<Duration>(Clock::now() - start);
  const Duration left =
      std::clamp<Duration>(timeout + common.wait_for_server - taken, Duration{1000}, timeout);
  auto answer = ask(chosen.command, *store, common, left);
  return answer ? *std::move(answer) : answer_of(answer.error(), chosen.kind);
}

}  // namespace

int run_once(const Chosen& chosen, const Common& common) {
  ::signal(SIGPIPE, SIG_IGN);
  Answer answer = answer_once(chosen, common);
  if (!answer.complaint.empty()) std::cerr << "musterctl: " << answer.complaint << '\n';
  std::string& text = answer.text;
  if (common.json) {
    text = text_of(answer.document, 2);
  } else if (!text.empty() && text.back() != '\n' && ::isatty(STDOUT_FILENO) == 1) {
    text += '\n';  // only a value has no end of its own
  }
  if (write_out(text) != Written::failed) return answer.exit_code;
  std::cerr << "musterctl: cannot write to the standard output: " << std::strerror(errno) << '\n';
  return exit_refused;
}

}  // namespace musterctl
