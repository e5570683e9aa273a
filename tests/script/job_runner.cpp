#include "job_runner.h"

#include <algorithm>
#include <utility>

namespace muster::script {

using namespace muster::launch;

namespace {

int int_or(Arguments& words, std::string_view name, int otherwise) {
  return static_cast<int>(words.number(name).value_or(otherwise));
}

/// "2" is launcher 2 of host h2; "2:1" has been told node rank 1, "2*4" has four processes, "2!x"
/// has other terms.
Node node_of(std::string word, int process_count) {
  Node node;
  const auto mark = word.find('!');
  if (mark != word.npos) {
    node.terms = word.substr(mark + 1);
    word.erase(mark);
  }
  const auto colon = word.find(':');
  const auto star = word.find('*');
  const std::string number = word.substr(0, std::min(colon, star));
  node.number = static_cast<std::uint64_t>(number_of(number));
  node.host = "h" + number;
  node.pid = static_cast<std::int64_t>(100 * node.number);
  node.process_count = star == word.npos ? process_count : int_of(word.substr(star + 1));
  if (colon != word.npos) node.wanted_rank = int_of(word.substr(colon + 1));
  return node;
}

std::string numbers_of(const std::vector<Node>& nodes) {
  std::string text;
  for (const Node& node : nodes) text += (text.empty() ? "" : ",") + std::to_string(node.number);
  return text;
}

Verdict::Kind kind_of(const std::string& word) {
  if (word == "succeeded") return Verdict::Kind::succeeded;
  if (word == "failed") return Verdict::Kind::rank_failed;
  if (word == "lost") return Verdict::Kind::nodes_lost;
  if (word == "left") return Verdict::Kind::node_left;
  if (word == "scaled_up") return Verdict::Kind::scaled_up;
  throw ScriptError("no verdict: " + word);
}

std::string name_of(Verdict::Kind kind) {
  switch (kind) {
    case Verdict::Kind::succeeded: return "succeeded";
    case Verdict::Kind::rank_failed: return "failed";
    case Verdict::Kind::nodes_lost: return "lost";
    case Verdict::Kind::node_left: return "left";
    case Verdict::Kind::scaled_up: return "scaled_up";
  }
  return "?";
}

Line line_of(const WatchNodes& effect) {
  return {{}, effect.watch == Watch::on ? "watch_nodes" : "watch_nodes off", {}};
}
Line line_of(const PublishPlan& effect) {
  Line line{{}, "publish plan " + std::to_string(effect.plan.attempt), {}};
  line.with("nodes", numbers_of(effect.plan.nodes));
  if (effect.plan.restarts_used > 0) line.with("used", std::to_string(effect.plan.restarts_used));
  return line;
}
Line line_of(const AwaitPlan& effect) {
  return {{}, "await plan " + std::to_string(effect.attempt), {}};
}
Line line_of(const AwaitVerdict& effect) {
  return {{}, "await verdict " + std::to_string(effect.attempt), {}};
}
Line line_of(const PublishVerdict& effect) {
  const Verdict& verdict = effect.verdict;
  Line line{
      {}, "publish verdict " + std::to_string(effect.attempt) + " " + name_of(verdict.kind), {}};
  if (verdict.exit_code != 0) line.with("code", std::to_string(verdict.exit_code));
  std::string numbers;
  for (const std::uint64_t number : verdict.nodes)
    numbers += (numbers.empty() ? "" : ",") + std::to_string(number);
  if (!numbers.empty()) line.with("nodes", numbers);
  return line.further("text", verdict.text);
}
Line line_of(const PublishEnding& effect) {
  return Line{{}, "publish ending " + std::to_string(effect.ending.exit_code), {}}.further(
      "text", effect.ending.text);
}
Line line_of(const CountSuccess& effect) {
  return {{}, "count_success " + std::to_string(effect.attempt), {}};
}
Line line_of(const Unregister&) { return {{}, "unregister", {}}; }
Line line_of(const StartRanks& effect) {
  Line line{{}, "start " + std::to_string(effect.plan.attempt), {}};
  line.with("node_rank", std::to_string(effect.node_rank));
  line.further("base", std::to_string(effect.plan.base_rank_of(effect.node_rank)));
  return line.further("world", std::to_string(effect.plan.world_size()));
}
Line line_of(const ForwardSignal& effect) {
  return {{}, "forward " + std::to_string(effect.number), {}};
}
Line line_of(const EndRanks& effect) {
  Line line{{}, "end_ranks", {}};
  line.with("grace", text_of(effect.grace));
  if (effect.were_told) line.with("told", "yes");
  return line;
}
Line line_of(const Say& effect) {
  return Line{{}, effect.importance == Importance::failure ? "say failure" : "say", {}}.further(
      "text", effect.text);
}
Line line_of(const Finish& effect) {
  return {{}, "finish " + std::to_string(effect.exit_code), {}};
}

std::vector<Node> nodes_of(Arguments& words) {
  std::vector<Node> nodes;
  while (const auto word = words.next()) nodes.push_back(node_of(*word, 2));
  return nodes;
}

Event event_of(const std::string& verb, Arguments& words) {
  if (verb == "registered")
    return Registered{static_cast<std::uint64_t>(number_of(words.next("its number")))};
  if (verb == "nodes") return NodesSeen{nodes_of(words)};
  if (verb == "plan") {
    Plan plan;
    plan.attempt = int_of(words.next("the attempt"));
    plan.restarts_used = int_or(words, "used", 0);
    plan.nodes = nodes_of(words);
    return PlanSeen{*decode_plan(encode(plan))};
  }
  if (verb == "verdict") {
    VerdictSeen seen;
    seen.attempt = int_of(words.next("the attempt"));
    seen.verdict.kind = kind_of(words.next("the verdict"));
    seen.verdict.exit_code = int_or(words, "code", 0);
    seen.verdict.is_final = words.flag("final");
    for (const std::string& number : words.list("nodes"))
      seen.verdict.nodes.push_back(static_cast<std::uint64_t>(number_of(number)));
    seen.verdict.text = "why";
    seen.verdict = *decode_verdict(encode(seen.verdict));
    return seen;
  }
  if (verb == "ending") {
    const Ending ending{int_of(words.next("its exit code")), words.named("text").value_or("")};
    return EndingSeen{*decode_ending(encode(ending))};
  }
  if (verb == "succeeded") {
    const int attempt = int_of(words.next("the attempt"));
    return SuccessCounted{attempt, int_of(words.next("how many nodes"))};
  }
  if (verb == "lost") {
    NodesLost lost;
    lost.attempt = int_of(words.next("the attempt"));
    lost.why = "its launcher is dead";
    while (const auto word = words.next()) lost.node_ranks.push_back(int_of(*word));
    return lost;
  }
  if (verb == "board_lost") return BoardLost{"the meeting place is gone"};
  if (verb == "rank") {
    RankEnded ended;
    ended.local_rank = int_of(words.next("the local rank"));
    ended.exit_code = int_of(words.next("its exit code"));
    ended.attempt = int_or(words, "attempt", 0);
    ended.how = "exited with " + std::to_string(ended.exit_code);
    return ended;
  }
  if (verb == "not_started")
    return NotStarted{int_or(words, "attempt", 0), int_of(words.next("the exit code")), "why"};
  if (verb == "gone") return RanksGone{words.named("stuck").value_or("")};
  if (verb == "signal") return Signalled{int_of(words.next("its number")), words.flag("host")};
  throw ScriptError("no event of a job: " + verb);
}

}  // namespace

std::vector<Line> JobRunner::run(const Step& step, const std::string&) {
  Arguments words(step.words);
  if (step.verb == "job") return begin(words), std::vector<Line>();
  if (!job_) throw ScriptError("a script begins with `job`");
  if (step.verb == "+") {
    const auto time = duration_of(words.next("the time"));
    if (!time) throw ScriptError("no time");
    return pass(*time);
  }
  const Event event = event_of(step.verb, words);
  words.finish();
  return tell(event);
}

/// `job [nodes=MIN:MAX] [restarts=N] [processes=N] [exit_grace=TIME] [scale_up]`
void JobRunner::begin(Arguments& words) {
  JobOptions options;
  const std::string range = words.named("nodes").value_or("1");
  const auto colon = range.find(':');
  options.nodes_min = int_of(range.substr(0, colon));
  options.nodes_max = colon == range.npos ? options.nodes_min : int_of(range.substr(colon + 1));
  options.max_restarts = int_or(words, "restarts", 0);
  options.self.process_count = int_or(words, "processes", 2);
  options.exit_grace = words.duration("exit_grace");
  options.scale_up = words.flag("scale_up");
  words.finish();
  now_ = Instant(std::chrono::hours(1));
  job_.emplace(options, now_);
}

std::vector<Line> JobRunner::tell(const Event& event) {
  std::vector<Line> lines;
  for (const Effect& effect : job_->on(event, now_))
    std::visit([&](const auto& each) { lines.push_back(line_of(each)); }, effect);
  return lines;
}

std::vector<Line> JobRunner::pass(Duration time) {
  const Instant begin = now_;
  const Instant end = now_ + time;
  std::vector<Line> lines;
  while (job_->next_deadline() <= end) {
    now_ = std::max(now_, job_->next_deadline());
    for (Line& line : tell(Advance{})) {
      line.at = now_ - begin;
      lines.push_back(std::move(line));
    }
  }
  now_ = end;
  return lines;
}

}  // namespace muster::script
