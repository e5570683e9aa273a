#include <algorithm>

#include "launch/log_names.h"
#include "option.h"

// What becomes of what ranks print.

namespace musterrun {
namespace {

using muster::launch::LaunchOptions;
using muster::launch::OutputOptions;
using muster::launch::StreamChoice;

Take format_into(Field<std::optional<std::string>> field) {
  return [field](const std::string& value, const std::string&, Asked& to) {
    const auto format = muster::launch::LogFormat::parse(value);
    if (!format) return format.error().detail;
    field(to.options) = value;
    return std::string();
  };
}

Take streams_into(Field<StreamChoice> field) {
  return [field](const std::string& value, const std::string&, Asked& to) {
    const auto choice = StreamChoice::parse(value);
    if (!choice) return choice.error().detail;
    field(to.options) = *choice;
    return std::string();
  };
}

std::string take_shown_ranks(const std::string& value, const std::string&, Asked& to) {
  std::vector<int> ranks;
  std::string rest = value + ",";
  while (!rest.empty()) {
    const std::string part = rest.substr(0, rest.find(','));
    rest.erase(0, part.size() + 1);
    const auto rank = int_in(part, 0);
    if (!rank) return no(part, "local rank; write a list such as 0,1");
    if (std::find(ranks.begin(), ranks.end(), *rank) == ranks.end()) ranks.push_back(*rank);
  }
  to.options.output.shown_local_ranks = std::move(ranks);
  return {};
}

}  // namespace

std::vector<Option> output_options() {
  using O = LaunchOptions;
  return {
      {{"stdout"},
       "",
       "",
       "FORMAT",
       "the file for what a rank prints, but for local rank 0; with {rank}, {local_rank}, "
       "{world_size}, {local_world_size}, {node_rank}, {attempt}, {role}",
       "",
       format_into(field<&O::output, &OutputOptions::stdout_format>)},
      {{"stderr"},
       "",
       "",
       "FORMAT",
       "the same for its standard error",
       "",
       format_into(field<&O::output, &OutputOptions::stderr_format>)},
      {{"log-dir"},
       "",
       "",
       "DIR",
       "the folder for the files of --redirects and --tee, and of errors; without it a temporary "
       "one",
       "",
       text_into(field<&O::output, &OutputOptions::log_dir>)},
      {{"redirects"},
       "r",
       "",
       "STREAMS",
       "what goes to files alone: 0 (nothing), 1 (stdout), 2 (stderr), 3 (both), or of each local "
       "rank such as 0:1,1:3",
       "0",
       streams_into(field<&O::output, &OutputOptions::redirects>)},
      {{"tee"},
       "t",
       "",
       "STREAMS",
       "what is shown and goes to files as well",
       "0",
       streams_into(field<&O::output, &OutputOptions::tee>)},
      {{"local-ranks-filter"},
       "",
       "",
       "LIST",
       "the local ranks whose output is shown, such as 0,1",
       "",
       take_shown_ranks},
      {{"log-line-prefix-template"},
       "",
       "",
       "TEMPLATE",
       "what stands before each line of --tee, with ${role_name}, ${rank}, ${local_rank}, "
       "${hostname}",
       "",
       text_into(field<&O::output, &OutputOptions::line_prefix>)},
  };
}

}  // namespace musterrun
