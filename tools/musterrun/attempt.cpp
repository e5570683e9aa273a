#include "attempt.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#include <asio/ip/host_name.hpp>
#include <nlohmann/json.hpp>

#include "base/secret/unshown.h"
#include "launch/command.h"
#include "launch/expansion.h"
#include "launch/log_names.h"
#include "launch/rank_environment.h"

namespace musterrun {

using namespace muster::launch;
using muster::base::shown_unless_secret;

namespace {

constexpr std::size_t told_lines_max = 20;

/// returns  what has failed; empty: it is there
std::string make_folder(const std::string& path) {
  std::error_code failed;
  std::filesystem::create_directories(path, failed);
  if (!failed) return {};
  return "the folder " + shown_unless_secret(path) + " cannot be made: " + failed.message();
}

std::string last_lines(const std::string& text) {
  std::size_t begin = text.size();
  for (std::size_t line = 0; line <= told_lines_max && begin > 0; ++line) {
    const auto found = text.rfind('\n', begin - 1);
    if (found == std::string::npos) return text;
    begin = found;
  }
  return begin == 0 ? text : text.substr(begin + 1);
}

/// What torch's `record` has written into the file that TORCHELASTIC_ERROR_FILE names.
std::string message_in(const std::string& file) {
  std::ifstream stream(file);
  if (!stream) return {};
  const auto document = nlohmann::json::parse(stream, nullptr, false);
  if (!document.is_object() || !document.contains("message")) return {};
  const auto& message = document["message"];
  if (message.is_string()) return message.get<std::string>();
  if (message.is_object() && message.contains("message") && message["message"].is_string())
    return message["message"].get<std::string>();
  return {};
}

}  // namespace

Attempt::Attempt(asio::io_context& context, Console& console, const LaunchOptions& options,
                 const Variables& environment, const LogFolder& files, AttemptPlace place)
    : context_(context),
      console_(console),
      options_(options),
      environment_(environment),
      files_(files),
      place_(std::move(place)) {}

std::string Attempt::start(GuardianLink& guardian) {
  if (!keeps_files()) {
    if (std::string problem = make_folder(files_.path()); !problem.empty()) return problem;
  }
  for (int local_rank = 0; local_rank < options_.placement.process_count; ++local_rank)
    if (std::string problem = start_rank(guardian, local_rank); !problem.empty()) return problem;
  return {};
}

std::string Attempt::start_rank(GuardianLink& guardian, int local_rank) {
  RankState& rank = ranks_[local_rank];
  std::string problem;
  if (keeps_files()) {
    problem = make_folder(files_.folder_of(place_.number, local_rank));
    if (!problem.empty()) return problem;
    rank.error_file = files_.error_of(place_.number, local_rank);
  } else {
    rank.error_file = files_.unkept_error_of(place_.number, local_rank);
  }
  if (problem = open_stream(local_rank, Console::Stream::output, rank.output); !problem.empty())
    return problem;
  if (problem = open_stream(local_rank, Console::Stream::errors, rank.errors); !problem.empty())
    return problem;

  RankPlace place;
  place.rank = rank_of(local_rank);
  place.local_rank = local_rank;
  place.world_size = place_.world_size;
  place.local_world_size = options_.placement.process_count;
  place.node_rank = place_.node_rank;
  place.node_count = place_.node_count;
  place.role = options_.role;
  if (place_.base_role_rank) place.role_rank = *place_.base_role_rank + local_rank;
  place.role_world_size = place_.role_world_size;
  place.master_addr = place_.master_addr;
  place.master_port = place_.master_port;
  place.has_agent_store = place_.has_agent_store;
  place.attempt = place_.number;
  place.max_restarts = options_.max_restarts;
  place.job_id = place_.job_id;
  place.error_file = rank.error_file;
  place.store = place_.store;
  place.name_space = place_.name_space;
  const Variables variables = environment_of(place, environment_);
  ProcessStart start;
  for (const auto& [name, value] : variables) start.variables.push_back(name + "=" + value);
  start.arguments = command_of(options_, variables);
  const bool has_input = place.rank == 0;
  const muster::base::FileHandle none(has_input ? -1 : ::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!has_input && !none) return "/dev/null: " + text_of_error(errno);
  start.input = has_input ? STDIN_FILENO : none.get();
  start.output = rank.output->descriptor_of_rank();
  start.errors = rank.errors->descriptor_of_rank();
  const int error = guardian.start(local_rank, start);
  rank.output->release();
  rank.errors->release();
  return error == 0 ? std::string() : "its arguments and variables: " + text_of_error(error);
}

/// returns  what has failed; empty: it is open
std::string Attempt::open_stream(int local_rank, Console::Stream stream,
                                 std::unique_ptr<RankStream>& opened) const {
  std::string problem;
  StreamTarget target = target_of(local_rank, stream, problem);
  if (!problem.empty()) return problem;
  const std::string file = target.file;
  opened = std::make_unique<RankStream>(context_, console_, std::move(target));
  if (opened->is_open()) return {};
  const std::string error = text_of_error(errno);
  return std::string("standard ") + (stream == Console::Stream::output ? "output" : "error") +
         " of local rank " + std::to_string(local_rank) +
         (file.empty() ? "" : ", the file " + shown_unless_secret(file)) + ": " + error;
}

/// Whether each rank has a folder, which costs more than to start it.
bool Attempt::keeps_files() const {
  return !options_.output.log_dir.empty() || !options_.output.tee.is_none() ||
         !options_.output.redirects.is_none();
}

std::string Attempt::prefix_of(int local_rank) const {
  const std::string rank = std::to_string(rank_of(local_rank));
  const auto* form = find_variable(environment_, "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE");
  if (!options_.output.line_prefix.empty()) form = &options_.output.line_prefix;
  if (form == nullptr || form->empty()) return "[" + options_.role + rank + "]: ";
  return expanded(*form, {{"role_name", options_.role},
                          {"rank", rank},
                          {"local_rank", std::to_string(local_rank)},
                          {"hostname", asio::ip::host_name()}});
}

/// Composer's rule: local rank 0 is seen, the others write to files, if any. With a folder for
/// logs, or `--redirects` and `--tee`, torchrun's.
StreamTarget Attempt::target_of(int local_rank, Console::Stream stream,
                                std::string& problem) const {
  StreamTarget target;
  target.stream = stream;
  const bool is_output = stream == Console::Stream::output;
  const LogPlace place{
      rank_of(local_rank), local_rank,    place_.world_size, options_.placement.process_count,
      place_.node_rank,    place_.number, options_.role};
  const auto& format = is_output ? options_.output.stdout_format : options_.output.stderr_format;
  const std::string in_folder = is_output ? files_.stdout_of(place_.number, local_rank)
                                          : files_.stderr_of(place_.number, local_rank);
  const auto is_in = [&](const StreamChoice& choice) {
    const Streams streams = choice.of(local_rank);
    return is_output ? streams.has_stdout : streams.has_stderr;
  };
  const std::string prefix = prefix_of(local_rank);
  const bool is_named =
      options_.output.shown_local_ranks.empty() ||
      std::find(options_.output.shown_local_ranks.begin(), options_.output.shown_local_ranks.end(),
                local_rank) != options_.output.shown_local_ranks.end();
  if (is_in(options_.output.tee)) {
    target.file = in_folder;
    target.is_shown = is_named;
    target.prefix = prefix;
  } else if (is_in(options_.output.redirects)) {
    target.file = in_folder;
  } else if (options_.compat == Compat::torchrun) {
    target.is_shown = is_named;
    if (!is_named) target.file = "/dev/null";
  } else if (local_rank == 0 && is_named) {
    target.is_shown = true;
    if (!options_.output.log_dir.empty()) target.file = in_folder;
  } else if (local_rank != 0 && !options_.output.shown_local_ranks.empty() && is_named) {
    target.is_shown = true;
    target.prefix = prefix;
  } else if (format) {
    const auto parsed = LogFormat::parse(*format);
    if (!parsed) {
      problem = parsed.error().detail;
      return target;
    }
    target.file = parsed->name_of(place);
    const auto parent = std::filesystem::path(target.file).parent_path();
    std::error_code ignored;  // the file says what is wrong
    if (!parent.empty()) std::filesystem::create_directories(parent, ignored);
  } else if (!options_.output.log_dir.empty()) {
    target.file = in_folder;
  }
  return target;
}

std::string Attempt::last_words(int local_rank) {
  const auto rank = ranks_.find(local_rank);
  if (rank == ranks_.end() || !rank->second.errors) return {};
  rank->second.output->drain();
  rank->second.errors->drain();
  if (std::string message = message_in(rank->second.error_file); !message.empty()) return message;
  const std::string errors = last_lines(rank->second.errors->tail());
  return errors.empty() ? last_lines(rank->second.output->tail()) : errors;
}

}  // namespace musterrun
