#include "launch_runner.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "launch/command.h"
#include "launch/exit_status.h"
#include "launch/expansion.h"
#include "launch/log_names.h"
#include "launch/placement.h"
#include "launch/signal_names.h"
#include "launch/stream_choice.h"

namespace muster::script {
namespace {

using launch::LaunchOptions;
using launch::Variables;

Line error_line(const Error& error) {
  return Line{{}, std::string(name_of(error.code)), {}}.further("detail", error.detail);
}

Line words_line(const std::vector<std::string>& words) {
  std::vector<std::string> shown;
  for (const std::string& word : words) shown.push_back(name_or_quoted(word));
  return Line{{}, joined(shown, " "), {}};
}

std::pair<std::string, std::string> halves_of(const std::string& word) {
  const auto equals = word.find('=');
  if (equals == word.npos) throw ScriptError("not of the form name=value: " + word);
  return {word.substr(0, equals), bytes_of(word.substr(equals + 1))};
}

Variables variables_in(const std::vector<std::string>& words) {
  Variables variables;
  for (const std::string& word : words) variables.insert(halves_of(word));
  return variables;
}

launch::ProgramForm form_of(const std::string& name) {
  using launch::ProgramForm;
  if (name == "automatic") return ProgramForm::automatic;
  if (name == "script") return ProgramForm::script;
  if (name == "module") return ProgramForm::module;
  if (name == "command") return ProgramForm::command;
  throw ScriptError("no form of a program: " + name);
}

/// "2" or "1:4"
launch::NodeRange nodes_of(const std::string& text) {
  const auto colon = text.find(':');
  const int min = int_of(text.substr(0, colon));
  return {min, colon == text.npos ? min : int_of(text.substr(colon + 1))};
}

using Put = std::function<void(LaunchOptions&, const std::string&)>;

/// By its name on the command line; what may be told of a launch.
const std::map<std::string, Put>& puts() {
  static const std::map<std::string, Put> all = {
      {"nproc", [](auto& to, auto& text) { to.placement.process_count = int_of(text); }},
      {"nnodes", [](auto& to, auto& text) { to.placement.nodes = nodes_of(text); }},
      {"world-size", [](auto& to, auto& text) { to.placement.world_size = int_of(text); }},
      {"base-rank", [](auto& to, auto& text) { to.placement.base_rank = int_of(text); }},
      {"node-rank", [](auto& to, auto& text) { to.placement.node_rank = int_of(text); }},
      {"master-addr", [](auto& to, auto& text) { to.master.addr = text; }},
      {"master-port", [](auto& to, auto& text) { to.master.port = int_of(text); }},
      {"MASTER-ADDR", [](auto& to, auto& text) { to.master.inherited_addr = text; }},
      {"MASTER-PORT", [](auto& to, auto& text) { to.master.inherited_port = int_of(text); }},
  };
  return all;
}

/// The number of a key of a rank's place; null: there is no such key.
int* number_in(launch::RankPlace& place, const std::string& key) {
  const std::map<std::string, int*> numbers = {{"rank", &place.rank},
                                               {"local_rank", &place.local_rank},
                                               {"world_size", &place.world_size},
                                               {"local_world_size", &place.local_world_size},
                                               {"node_rank", &place.node_rank},
                                               {"attempt", &place.attempt},
                                               {"max_restarts", &place.max_restarts}};
  const auto found = numbers.find(key);
  return found == numbers.end() ? nullptr : found->second;
}

std::string* text_in(launch::RankPlace& place, const std::string& key) {
  const std::map<std::string, std::string*> texts = {
      {"role", &place.role},     {"master_addr", &place.master_addr},
      {"job_id", &place.job_id}, {"error_file", &place.error_file},
      {"store", &place.store},   {"name_space", &place.name_space}};
  const auto found = texts.find(key);
  return found == texts.end() ? nullptr : found->second;
}

launch::RankPlace place_in(const std::vector<std::string>& words) {
  launch::RankPlace place;
  for (const std::string& word : words) {
    const auto [key, value] = halves_of(word);
    if (int* const number = number_in(place, key)) {
      *number = int_of(value);
    } else if (std::string* const text = text_in(place, key)) {
      *text = value;
    } else if (key == "node_count") {
      place.node_count = int_of(value);
    } else if (key == "master_port") {
      place.master_port = int_of(value);
    } else if (key == "has_agent_store") {
      place.has_agent_store = int_of(value) != 0;
    } else if (key == "role_rank") {
      place.role_rank = int_of(value);
    } else if (key == "role_world_size") {
      place.role_world_size = int_of(value);
    } else {
      throw ScriptError("no part of a rank's place: " + key);
    }
  }
  return place;
}

std::vector<Line> choose_streams(Arguments& words) {
  const std::string text = words.next("the choice");
  std::vector<Line> lines;
  const auto choice = launch::StreamChoice::parse(bytes_of(text));
  if (!choice) return {error_line(choice.error())};
  while (const auto rank = words.next()) {
    const launch::Streams streams = choice->of(int_of(*rank));
    const std::string what = streams.has_stdout   ? streams.has_stderr ? "both" : "stdout"
                             : streams.has_stderr ? "stderr"
                                                  : "none";
    lines.push_back(Line{{}, "rank " + *rank + " " + what, {}});
  }
  words.finish();
  return lines;
}

std::vector<Line> read_status(Arguments& words) {
  const auto status = launch::exit_status_of(int_of(words.next("the status")));
  const auto compat = words.flag("torchrun") ? launch::Compat::torchrun : launch::Compat::composer;
  words.finish();
  Line line{{}, "code " + std::to_string(launch::exit_code_of(status, compat)), {}};
  line.with("text", "\"" + status.text + "\"");
  return {line};
}

std::vector<Line> read_signals(Arguments& words) {
  const auto signals = launch::signals_of(bytes_of(words.next("the signals")));
  words.finish();
  if (!signals) return {error_line(signals.error())};
  std::vector<Line> lines;
  for (const int signal : *signals) {
    const std::string end = launch::ends_job(signal) ? " ends the job" : " is passed on";
    lines.push_back(Line{{}, launch::name_of_signal(signal) + end, {}});
  }
  return lines;
}

}  // namespace

std::vector<Line> LaunchRunner::run(const Step& step, const std::string&) {
  if (step.verb == "options") return read_options(step), std::vector<Line>();
  if (step.verb == "environment") return inherited_ = variables_in(step.words), std::vector<Line>();
  if (step.verb == "place") return place();
  if (step.verb == "rank") return tell_rank(step);
  if (step.verb == "inherits") {
    std::vector<Line> lines;
    for (const auto& [name, value] : launch::cleaned(inherited_))
      lines.push_back(Line{{}, name + "=" + name_or_quoted(value), {}});
    return lines;
  }
  if (step.verb == "expand") {
    std::vector<std::string> words;
    for (const std::string& word : step.words)
      words.push_back(launch::expanded(bytes_of(word), inherited_));
    return {words_line(words)};
  }
  if (step.verb == "command") {
    LaunchOptions options = options_;
    options.program.form = form_of(step.words.at(0));
    for (std::size_t i = 1; i < step.words.size(); ++i)
      options.program.words.push_back(bytes_of(step.words[i]));
    if (std::erase(options.program.words, "unexpanded") > 0)
      options.program.expands_arguments = false;
    return {words_line(launch::command_of(options, inherited_))};
  }
  Arguments words(step.words);
  if (step.verb == "streams") return choose_streams(words);
  if (step.verb == "status") return read_status(words);
  if (step.verb == "signals") return read_signals(words);
  if (step.verb == "logs") return name_logs(words);
  if (step.verb == "log_dir") return lay_out_logs(words);
  throw ScriptError("no verb of the launcher: " + step.verb);
}

/// `options NAME=VALUE...`; a variable that has said it behind "@": `node-rank=1@NODE_RANK`.
void LaunchRunner::read_options(const Step& step) {
  options_ = LaunchOptions();
  for (const std::string& word : step.words) {
    auto [name, value] = halves_of(word);
    const auto put = puts().find(name);
    if (put == puts().end()) throw ScriptError("no option of a launch: " + name);
    const auto at = value.find('@');
    options_.given[name] = at == value.npos ? "--" + name : value.substr(at + 1);
    put->second(options_, value.substr(0, at));
  }
}

std::vector<Line> LaunchRunner::place() const {
  const auto placed = launch::placement_of(options_);
  if (!placed) return {error_line(placed.error())};
  const int last = placed->base_rank + placed->process_count - 1;
  Line line{{}, "ranks " + std::to_string(placed->base_rank) + "-" + std::to_string(last), {}};
  line.with("of", std::to_string(placed->world_size));
  line.with("node", std::to_string(placed->node_rank));
  line.with("nodes", placed->node_count ? std::to_string(*placed->node_count) : "unknown");
  line.with("master", placed->master_addr + ":" +
                          (placed->master_port ? std::to_string(*placed->master_port) : "chosen"));
  line.further("several", placed->is_multi_node ? "yes" : "no");
  std::vector<Line> lines{line};
  for (const std::string& warning : placed->warnings)
    lines.push_back(Line{{}, "warning", {}}.further("text", warning));
  return lines;
}

std::vector<Line> LaunchRunner::tell_rank(const Step& step) const {
  std::vector<Line> lines;
  for (const auto& [name, value] : launch::variables_of(place_in(step.words), inherited_))
    lines.push_back(Line{{}, name + "=" + name_or_quoted(value), {}});
  return lines;
}

/// `logs FORMAT [KEY=VALUE...]`
std::vector<Line> LaunchRunner::name_logs(Arguments& words) const {
  const auto format = launch::LogFormat::parse(bytes_of(words.next("the format")));
  launch::LogPlace place;
  const auto number = [&](const char* name, int& to) {
    if (const auto value = words.number(name)) to = static_cast<int>(*value);
  };
  number("rank", place.rank);
  number("local_rank", place.local_rank);
  number("world_size", place.world_size);
  number("local_world_size", place.local_world_size);
  number("node_rank", place.node_rank);
  number("attempt", place.attempt);
  place.role = words.named("role").value_or("default");
  words.finish();
  if (!format) return {error_line(format.error())};
  return {Line{{}, format->name_of(place), {}}};
}

/// `log_dir DIR JOB RANDOM ATTEMPT LOCAL_RANK`
std::vector<Line> LaunchRunner::lay_out_logs(Arguments& words) const {
  const std::string dir = words.next("the folder");
  const std::string job = words.next("the job");
  const launch::LogFolder folder(dir, job, words.next("the random part"));
  const int attempt = int_of(words.next("the attempt"));
  const int local_rank = int_of(words.next("the local rank"));
  words.finish();
  std::vector<Line> lines;
  for (const std::string& name :
       {folder.stdout_of(attempt, local_rank), folder.stderr_of(attempt, local_rank),
        folder.error_of(attempt, local_rank)})
    lines.push_back(Line{{}, name, {}});
  return lines;
}

}  // namespace muster::script
