#include "runtime_runner.h"

#include <algorithm>
#include <array>
#include <optional>
#include <regex>
#include <utility>

#include "muster/error.h"
#include "muster/result.h"
#include "muster/sampler.h"
#include "runtime/communicator_kinds.h"

namespace muster::script {
namespace {

constexpr std::array job_numbers{JobNumber::world_size,       JobNumber::rank,
                                 JobNumber::local_world_size, JobNumber::local_rank,
                                 JobNumber::node_count,       JobNumber::node_rank,
                                 JobNumber::replica_rank,     JobNumber::fs_local_rank};

JobNumber job_number_of(const std::string& name) {
  const auto found = std::find_if(job_numbers.begin(), job_numbers.end(),
                                  [&](JobNumber number) { return name_of(number) == name; });
  if (found == job_numbers.end()) throw ScriptError("no number of a job: " + name);
  return *found;
}

/// Its code and ranks, and of one of the environment the variables that it names, with their
/// values.
Line line_of(const Error& error) {
  Line line{{}, std::string(name_of(error.code)), {}};
  line.further("detail", error.detail);
  std::string ranks;
  for (const RankRange& range : error.rank_ranges) {
    ranks += (ranks.empty() ? "" : ",") + std::to_string(range.first);
    if (range.last != range.first) ranks += "-" + std::to_string(range.last);
  }
  if (!ranks.empty()) line.with("ranks", ranks);
  if (error.code != ErrorCode::environment) return line;
  static const std::regex variable("[A-Z][A-Z_]{3,}(=[^ :]*[^ :,])?");
  std::string names;
  for (std::sregex_iterator found(error.detail.begin(), error.detail.end(), variable), end;
       found != end; ++found)
    names += (names.empty() ? "" : "+") + found->str();
  return line.with("names", names);
}

Line line_of(JobNumber number, const FoundNumber& found) {
  Line line{{}, std::string(name_of(number)) + " " + std::to_string(found.value), {}};
  std::string source;
  for (const char letter : found.source)
    if (letter != ' ') source += letter == ',' ? '+' : letter;
  return source.empty() ? line : line.with("from", source);
}

std::optional<int> int_of(Arguments& words, std::string_view name) {
  const auto number = words.number(name);
  return number ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

/// `rank=1 world_size=4` and what else the group knows.
std::optional<FormedGroup> formed_of(Arguments& words) {
  const auto rank = int_of(words, "rank");
  const auto world_size = int_of(words, "world_size");
  if (!rank || !world_size) return {};
  return FormedGroup{*rank,
                     *world_size,
                     int_of(words, "local_world_size"),
                     int_of(words, "local_rank"),
                     int_of(words, "node_count"),
                     int_of(words, "node_rank")};
}

std::string text_of(const std::vector<std::uint64_t>& elements) {
  std::string text;
  for (const std::uint64_t element : elements) text += " " + std::to_string(element);
  return text;
}

UnevenElements uneven_of(const std::string& name) {
  if (name == "pad") return UnevenElements::pad;
  if (name == "drop") return UnevenElements::drop;
  if (name == "exact") return UnevenElements::exact;
  throw ScriptError("neither pad, drop nor exact: " + name);
}

Environment::Variables variables_of(const Step& step) {
  Environment::Variables variables;
  for (const std::string& word : step.words) {
    const auto equals = word.find('=');
    if (equals == word.npos) throw ScriptError("no variable: " + word);
    variables[word.substr(0, equals)] = word.substr(equals + 1);
  }
  return variables;
}

/// The elements of each rank, or of the one that is named.
std::vector<Line> sample(Arguments& words) {
  SamplerOptions options;
  const std::int64_t count = number_of(words.next("the number of elements"));
  options.replica_count = static_cast<std::uint64_t>(number_of(words.next("the ranks")));
  const auto only = words.number("rank");
  const auto epoch = words.number("epoch").value_or(0);
  options.seed = static_cast<std::uint64_t>(words.number("seed").value_or(0));
  options.shuffle = words.flag("shuffle");
  options.uneven = uneven_of(words.named("uneven").value_or("pad"));
  words.finish();

  std::vector<Line> lines;
  options.rank = static_cast<std::uint64_t>(only.value_or(0));
  do {
    auto sampler = DistributedSampler::create(static_cast<std::uint64_t>(count), options);
    if (!sampler) return {line_of(sampler.error())};
    sampler->set_epoch(static_cast<std::uint64_t>(epoch));
    const auto elements = sampler->indices();
    if (elements.size() != sampler->size()) throw ScriptError("size() and indices() differ");
    Line line{{}, "rank " + std::to_string(options.rank) + ":" + text_of(elements), {}};
    line.further("padded", std::to_string(sampler->padded_count()));
    line.further("dropped", std::to_string(sampler->dropped_count()));
    lines.push_back(std::move(line));
  } while (!only && ++options.rank < options.replica_count);
  return lines;
}

}  // namespace

std::vector<Line> RuntimeRunner::run(const Step& step, const std::string&) {
  if (step.verb == "environment") return read_environment(step), std::vector<Line>();
  if (step.verb == "told") return tell(step), std::vector<Line>();
  if (step.verb == "layout") return lay_out();
  Arguments words(step.words);
  if (step.verb == "mesh") return make_mesh(words);
  if (step.verb == "along") return along(words);
  if (step.verb == "communicators") {
    const auto kinds = runtime::communicator_kinds_of(joined(step.words, " "));
    if (!kinds) return {line_of(kinds.error())};
    return {Line{{}, runtime::text_of(*kinds), {}}};
  }
  if (step.verb == "sampler") return sample(words);
  if (step.verb == "offer") return offers_.add(words), std::vector<Line>();
  if (step.verb == "cut") return offers_.cut(words), std::vector<Line>();
  if (step.verb == "compare") {
    words.finish();
    const auto compared = offers_.compare();
    return {compared ? Line{{}, "ok", {}} : line_of(compared.error())};
  }
  if (step.verb == "find") return find(words);
  if (step.verb == "number") return number(words);
  if (step.verb == "validate") {
    const auto how =
        words.flag("contradictions") ? Validation::contradictions : Validation::complete;
    words.finish();
    const auto valid = environment_.validate(how);
    return {valid ? Line{{}, "ok", {}} : line_of(valid.error())};
  }
  if (step.verb == "single") {
    words.finish();
    const auto single = environment_.is_single_process();
    if (!single.has_value()) return {line_of(single.error())};
    return {Line{{}, *single ? "yes" : "no", {}}};
  }
  throw ScriptError("no verb of the runtime: " + step.verb);
}

void RuntimeRunner::read_environment(const Step& step) {
  environment_ = Environment(variables_of(step));
}

/// `told [host=NAME] [boot=ID] [network=N] NAME=VALUE...`: the next rank, and what it knows.
void RuntimeRunner::tell(const Step& step) {
  Environment::Variables variables = variables_of(step);
  const auto taken = [&](const std::string& name, const std::string& otherwise) {
    const auto found = variables.extract(name);
    return found ? found.mapped() : otherwise;
  };
  const std::string host = taken("host", "a");
  const std::string boot_id = taken("boot", "1");
  const std::string network = taken("network", "1");
  ProcessInfo process;
  process.pid = static_cast<std::uint32_t>(told_.size());
  auto where = runtime::own_whereabouts(Environment(std::move(variables)), process);
  if (!where) throw ScriptError(where.error().message());
  where->host = host;
  where->boot_id = boot_id;
  where->network = static_cast<std::uint64_t>(number_of(network));
  auto travelled = runtime::decode_whereabouts(runtime::encode(*where));
  if (!travelled) throw ScriptError(travelled.error().message());
  told_.push_back(*std::move(travelled));
}

/// Of the ranks since the last one.
std::vector<Line> RuntimeRunner::lay_out() const {
  const auto places = runtime::lay_out(told_);
  if (!places) return {line_of(places.error())};
  std::vector<Line> lines;
  for (const JobPlace& place : *places) {
    Line line{{}, "rank " + std::to_string(place.rank), {}};
    line.with("node", std::to_string(place.node_rank));
    line.with("local",
              std::to_string(place.local_rank) + "/" + std::to_string(place.local_world_size));
    lines.push_back(std::move(line));
  }
  return lines;
}

/// `mesh NAME:SIZE... [ranks=R,...]`
std::vector<Line> RuntimeRunner::make_mesh(Arguments& words) {
  std::vector<int> ranks;
  for (const std::string& rank : words.list("ranks"))
    ranks.push_back(static_cast<int>(number_of(rank)));
  std::vector<MeshDimension> dimensions;
  while (const auto word = words.next()) {
    const auto colon = word->find(':');
    if (colon == word->npos) throw ScriptError("no NAME:SIZE: " + *word);
    dimensions.push_back(
        {word->substr(0, colon), static_cast<int>(number_of(word->substr(colon + 1)))});
  }
  words.finish();
  auto mesh = Mesh::create(std::move(dimensions), std::move(ranks));
  if (!mesh) return {line_of(mesh.error())};
  mesh_ = *std::move(mesh);
  return {};
}

/// `along DIMENSION RANK`: where the rank is, and who is along the dimension.
std::vector<Line> RuntimeRunner::along(Arguments& words) const {
  const std::string dimension = words.next("the dimension");
  const int rank = static_cast<int>(number_of(words.next("the rank")));
  words.finish();
  if (!mesh_) throw ScriptError("no mesh");
  const auto ranks = mesh_->ranks_along(dimension, rank);
  if (!ranks) return {line_of(ranks.error())};
  const auto text = [](const std::vector<int>& numbers) {
    std::string all;
    for (const int number : numbers) all += (all.empty() ? "" : ",") + std::to_string(number);
    return all;
  };
  Line line{{}, text(*ranks), {}};
  return {line.with("at", text(*mesh_->coordinates(rank)))};
}

/// `find all`, or the numbers that are named.
std::vector<Line> RuntimeRunner::find(Arguments& words) const {
  std::vector<JobNumber> wanted;
  if (words.flag("all")) wanted.assign(job_numbers.begin(), job_numbers.end());
  while (const auto name = words.next()) wanted.push_back(job_number_of(*name));
  words.finish();
  std::vector<Line> lines;
  for (const JobNumber number : wanted) {
    const auto found = environment_.find(number);
    if (!found.has_value()) {
      lines.push_back(line_of(found.error()));
    } else if (*found) {
      lines.push_back(line_of(number, **found));
    } else {
      lines.push_back(Line{{}, std::string(name_of(number)) + " nobody", {}});
    }
  }
  return lines;
}

/// `number NAME... environment_first|group_first [rank=R world_size=N ...]`
std::vector<Line> RuntimeRunner::number(Arguments& words) const {
  const bool group_first = words.flag("group_first");
  if (!group_first && !words.flag("environment_first")) throw ScriptError("missing: the rule");
  const auto rule = group_first ? EnvironmentRule::group_first : EnvironmentRule::environment_first;
  const auto formed = formed_of(words);
  std::vector<Line> lines;
  while (const auto name = words.next()) {
    const JobNumber number = job_number_of(*name);
    const auto found = environment_.number(number, rule, formed ? &*formed : nullptr);
    lines.push_back(found ? line_of(number, *found) : line_of(found.error()));
  }
  words.finish();
  return lines;
}

}  // namespace muster::script
