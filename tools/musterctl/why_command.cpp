#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "commands.h"
#include "json/why.h"
#include "muster/inspect.h"

// `why GROUP` explains one group; `why` all in which somebody waits, and who waits for keys.

namespace musterctl {
namespace {

using muster::GroupInfo;
using muster::Result;
using muster::WaiterInfo;
using muster::json::explain;
using muster::json::hangs;
using muster::json::has_waiters;
using muster::json::waits_for_keys;

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + '\n';
  return text;
}

/// "a", "b", "c" and 9 more.
std::string names_of(const std::vector<GroupInfo>& groups) {
  constexpr std::size_t named_max = 8;
  std::string text;
  for (std::size_t index = 0; index < std::min(groups.size(), named_max); ++index) {
    text += (index == 0 ? "" : ", ") + quoted_name(groups[index].name);
  }
  if (groups.size() > named_max) {
    text += " and " + std::to_string(groups.size() - named_max) + " more";
  }
  return text;
}

/// There is no such group: which there are, whether it is the name of keys, or of one that is over.
Result<Answer> tell_of_others(Run& run, const std::string& name, const muster::Error& error) {
  const auto groups = muster::inspect_groups(run.store, run.left());
  if (!groups) return groups.error();
  const auto waiters = muster::inspect_waiters(run.store, run.left());
  if (!waiters) return waiters.error();
  Answer answer = answer_of(error, Kind::reads);
  answer.complaint = "there is no group " + quoted_name(name) + " in namespace " +
                     quoted_name(run.common.name_space) + "; " +
                     (groups->empty() ? "no group is there" : "there: " + names_of(*groups));
  Json names = Json::array();
  Json exact = Json::array();
  bool is_text = true;
  for (const GroupInfo& group : *groups) {
    names.push_back(group.name);
    exact.push_back(base64(group.name));
    is_text &= is_utf8(group.name);
  }
  answer.document["groups"] = std::move(names);
  if (!is_text) answer.document["groups_base64"] = std::move(exact);
  Json of_keys = Json::array();
  for (const WaiterInfo& waiter : *waiters) {
    const bool is_meant = waiter.target.find('\'' + name) != std::string::npos;
    if (waits_for_keys(waiter) && is_meant) of_keys.push_back(json_of(waiter));
  }
  if (!of_keys.empty()) {
    answer.complaint += "; " + std::to_string(of_keys.size()) +
                        (of_keys.size() == 1 ? " call waits" : " calls wait") +
                        " for keys that begin with it: musterctl waiters";
  } else if (groups->empty()) {
    answer.complaint += "; groups of other namespaces: --namespace";
  }
  answer.document["waiters"] = std::move(of_keys);
  const auto history = muster::inspect_history(run.store, name, 0, run.left());
  if (history && !history->events.empty()) {
    answer.complaint += "; it was there: musterctl events " + quoted_name(name);
  }
  return answer;
}

/// Joins that were refused since the group began to form, or since it has formed.
Result<std::vector<muster::GroupEvent>> refused_joins(Run& run, const muster::GroupReport& report) {
  auto history = muster::inspect_history(run.store, report.name, 0, run.left());
  if (!history) return history.error();
  std::vector<muster::GroupEvent> refused;
  for (muster::GroupEvent& event : history->events) {
    if (event.what != muster::GroupEventKind::join_refused) continue;
    if (event.age - event.lasted <= report.age) refused.push_back(std::move(event));
  }
  return refused;
}

/// One group, with the refused joins in front: they are the reason if a group does not form.
/// Programs find them in the document of `events`.
Result<Answer> answer_of(Run& run, const muster::GroupReport& report, muster::Duration hung_for) {
  if (run.common.json) return Answer{json_of(report, hung_for), "", "", exit_ok};
  const auto refused = refused_joins(run, report);
  if (!refused) return refused.error();
  constexpr std::size_t shown_max = 4;
  std::string text;
  for (std::size_t i = refused->size() - std::min(shown_max, refused->size()); i < refused->size();
       ++i) {
    const muster::GroupEvent& event = (*refused)[i];
    text += text_of(event.age - event.lasted) + " ago, " + explain(event) + '\n';
  }
  return Answer{{}, text + joined(explain(report, hung_for)), "", exit_ok};
}

struct WhyArguments {
  std::string group;
  std::optional<muster::Duration> hung_for;  ///< none: what waits is told of, too

  muster::Duration threshold() const {
    return hung_for.value_or(muster::Duration(std::chrono::seconds(10)));
  }
};

Result<Answer> explain_one(Run& run, const WhyArguments& arguments) {
  const auto report = muster::inspect_group(run.store, arguments.group, run.left());
  if (!report && report.error().code == muster::ErrorCode::not_found) {
    return tell_of_others(run, arguments.group, report.error());
  }
  if (!report) return report.error();
  return answer_of(run, *report, arguments.threshold());
}

void add_key_waiters(Answer& answer, const std::vector<WaiterInfo>& waiters) {
  constexpr std::size_t told_max = 16;
  std::size_t count = 0;
  Json all = Json::array();
  for (const WaiterInfo& waiter : waiters) {
    if (!waits_for_keys(waiter)) continue;
    all.push_back(json_of(waiter));
    if (++count <= told_max) answer.text += explain(waiter) + '\n';
  }
  if (count > told_max) {
    answer.text += "and " + std::to_string(count - told_max) +
                   " other calls wait for keys: musterctl waiters\n";
  }
  answer.document["waiters"] = std::move(all);
}

/// The namespaces in which somebody waits beside this one: with the wrong one nothing hangs. And
/// clients of TCPStore that learn nothing from their own errors.
muster::Result<void> add_other_namespaces(Run& run, Answer& answer) {
  const auto status = run.store.status(run.left());
  if (!status) return status.error();
  for (const auto& [name, value] : *status) {
    if (name == "other_namespaces_waiting_count") answer.document[name] = std::stoull(value);
    if (name == "tcpstore_disconnected") {
      answer.document[name] = value;
      if (!value.empty()) {
        answer.text += "clients of TCPStore were disconnected: " + printable(value) + '\n';
      }
    }
    if (name != "other_namespaces_waiting") continue;
    answer.document[name] = value;
    if (value.empty()) continue;
    answer.text += "somebody waits in other namespaces: " + printable(value) + " (--namespace)\n";
  }
  return {};
}

/// The groups in which somebody waits, or, where a time is given, those that hang for so long.
muster::Result<void> add_groups(Run& run, const WhyArguments& arguments,
                                const std::vector<GroupInfo>& groups, Answer& answer) {
  bool does_any_hang = false;
  Json reports = Json::array();
  for (const GroupInfo& group : groups) {
    const auto report = muster::inspect_group(run.store, group.name, run.left());
    if (!report && report.error().code == muster::ErrorCode::not_found) continue;  // it is gone
    if (!report) return report.error();
    const bool does_hang = hangs(*report, arguments.threshold());
    does_any_hang |= does_hang;
    if (!has_waiters(*report) || (arguments.hung_for && !does_hang)) continue;
    auto explained = answer_of(run, *report, arguments.threshold());
    if (!explained) return explained.error();
    reports.push_back(std::move(explained->document));
    answer.text += explained->text;
  }
  answer.document = {{"hangs", does_any_hang}, {"groups", std::move(reports)}};
  return {};
}

Result<Answer> explain_all(Run& run, const WhyArguments& arguments) {
  const auto groups = muster::inspect_groups(run.store, run.left());
  if (!groups) return groups.error();
  Answer answer;
  const auto told = add_groups(run, arguments, *groups, answer);
  if (!told) return told.error();
  const std::string place = " in namespace " + quoted_name(run.common.name_space) + ", in " +
                            std::to_string(groups->size()) +
                            (groups->size() == 1 ? " group" : " groups");
  if (arguments.hung_for) {
    if (!answer.document["hangs"].get<bool>()) {
      answer.text = "nobody is held up for " + text_of(*arguments.hung_for) + place + '\n';
    }
    return answer;
  }
  const auto waiters = muster::inspect_waiters(run.store, run.left());
  if (!waiters) return waiters.error();
  add_key_waiters(answer, *waiters);
  if (answer.text.empty()) answer.text = "nobody waits" + place + " or for a key\n";
  const auto others = add_other_namespaces(run, answer);
  if (!others) return others.error();
  return answer;
}

}  // namespace

void add_why_command(CLI::App& app, Chosen& chosen) {
  auto arguments = std::make_shared<WhyArguments>();
  auto* why = app.add_subcommand(
      "why", "Why a group hangs: who is missing, who called what, who waits for whom.");
  why->footer(
      footer_with("  musterctl why                                   all that waits\n"
                  "  musterctl why trainer --watch=500ms\n"
                  "  musterctl why --hung-for 1min                   what hangs for so long\n"
                  "  musterctl --json why trainer | jq -e .hangs     succeeds while it hangs\n"));
  auto* option =
      why->add_option("GROUP", arguments->group,
                      "its name; without it all groups that wait, and who waits for keys");
  add_duration(*why, "--hung-for",
               "how long somebody must be held up for `.hangs`; without GROUP only such groups",
               [arguments](muster::Duration time) { arguments->hung_for = time; })
      ->default_str("10s");
  why->callback([=, &chosen] {
    const bool is_given = option->count() > 0;
    chosen.kind = Kind::reads;
    chosen.command = [=](Run& run) {
      return is_given ? explain_one(run, *arguments) : explain_all(run, *arguments);
    };
  });
}

}  // namespace musterctl
