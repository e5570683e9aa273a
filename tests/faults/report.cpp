#include "faults/report.h"

#include <chrono>
#include <cstdio>
#include <mutex>

namespace muster::faults {

void say(nlohmann::json line) {
  static std::mutex mutex;
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  line["t_us"] = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  const std::lock_guard lock(mutex);
  const std::string text = line.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  std::printf("%s\n", text.c_str());
  std::fflush(stdout);
}

nlohmann::json described(const ProcessInfo& process) {
  return {{"process", to_string(process.id)},
          {"host", process.host},
          {"pid", process.pid},
          {"label", process.label}};
}

nlohmann::json described(const Error& error) {
  nlohmann::json line{{"code", name_of(error.code)},
                      {"operation", error.operation},
                      {"group", error.group},
                      {"epoch", error.epoch},
                      {"round", error.round},
                      {"elapsed_us", error.elapsed.count()},
                      {"decided_by", error.decided_by},
                      {"decided_by_rank", error.decided_by_rank},
                      {"cause", name_of(error.cause)},
                      {"expected", error.expected},
                      {"actual", error.actual},
                      {"limit", error.limit},
                      {"happened", name_of(error.happened)},
                      {"message", error.message()}};
  line["ranks"] = nlohmann::json::array();
  for (const RankReport& rank : error.ranks) {
    nlohmann::json entry = described(rank.process);
    entry["rank"] = rank.rank;
    entry["joined"] = rank.joined;
    if (rank.silence) entry["silence_us"] = rank.silence->count();
    entry["cause"] = name_of(rank.cause);
    line["ranks"].push_back(std::move(entry));
  }
  line["ranges"] = nlohmann::json::array();
  for (const RankRange& range : error.rank_ranges) {
    line["ranges"].push_back({range.first, range.last});
  }
  return line;
}

}  // namespace muster::faults
