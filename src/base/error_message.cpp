#include <algorithm>
#include <vector>

#include "base/error_advice.h"
#include "muster/error.h"

// The line is built in the order in which people ask:
//
//    code: operation of group "name" (epoch, round) after elapsed: ranks; cause; numbers;
//    decided by whom; at address; detail; what to do
//
// Names come from other processes, so their control characters are made visible: the line stays
// one line. Its length is bounded by `full_max` and `ranges_max`, however many ranks are at fault.

MUSTER_BEGIN_NAMESPACE
namespace {

constexpr std::size_t full_max = 8;     // ranks told of with host, pid and label
constexpr std::size_t ranges_max = 16;  // ranges told of by their numbers

std::string text_of(Duration duration) {
  const auto microseconds = std::max<Duration::rep>(duration.count(), 0);
  if (microseconds < 1000) return std::to_string(microseconds) + " us";
  if (microseconds < 999'500) return std::to_string((microseconds + 500) / 1000) + " ms";
  const auto tenths = microseconds / 100'000 + (microseconds % 100'000 >= 50'000 ? 1 : 0);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
}

std::string one_line(std::string_view text) {
  constexpr char digits[] = "0123456789abcdef";
  std::string line;
  for (const char character : text) {
    const auto byte = static_cast<unsigned char>(character);
    if (byte >= 0x20 && byte != 0x7f) {
      line += character;
    } else {
      line += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
    }
  }
  return line;
}

/// Joins what is not empty.
std::string joined(const std::vector<std::string>& parts, std::string_view separator) {
  std::string text;
  for (const std::string& part : parts) {
    if (part.empty()) continue;
    if (!text.empty()) text += separator;
    text += part;
  }
  return text;
}

std::string subject_of(const Error& error) {
  std::string numbers;
  if (error.epoch != 0) numbers = "epoch " + std::to_string(error.epoch);
  if (error.round != 0) {
    if (!numbers.empty()) numbers += ", ";
    numbers += "round " + std::to_string(error.round);
  }
  std::string group;
  if (!error.group.empty()) {
    group = (error.operation.empty() ? "group \"" : "of group \"") + one_line(error.group) + '"';
  }
  return joined({one_line(error.operation), group, numbers.empty() ? "" : "(" + numbers + ")",
                 error.elapsed > Duration::zero() ? "after " + text_of(error.elapsed) : ""},
                " ");
}

std::string full_text_of(const RankReport& report) {
  const ProcessInfo& process = report.process;
  const std::string about =
      joined({process.host.empty() ? "" : "host " + one_line(process.host),
              process.pid == 0 ? "" : "pid " + std::to_string(process.pid),
              process.label.empty() ? "" : "label " + one_line(process.label),
              report.silence ? "silent for " + text_of(*report.silence) : "",
              report.called.empty() ? "" : "called " + one_line(report.called)},
             ", ");
  const std::string who =
      report.rank < 0 ? "the server's process" : "rank " + std::to_string(report.rank);
  return who + (about.empty() ? "" : " (" + about + ")");
}

/// "rank 3", or "ranks 3-5, 9"; past `ranges_max` it counts instead.
std::string text_of(const std::vector<RankRange>& ranges) {
  if (ranges.empty()) return "";
  if (ranges.size() == 1 && ranges[0].first == ranges[0].last) {
    return "rank " + std::to_string(ranges[0].first);
  }
  std::string text = "ranks ";
  std::int64_t untold = 0;
  for (std::size_t index = 0; index < ranges.size(); ++index) {
    const auto [first, last] = ranges[index];
    if (index >= ranges_max) {
      untold += std::int64_t{last} - first + 1;
      continue;
    }
    if (index > 0) text += ", ";
    text += std::to_string(first);
    if (last != first) text += "-" + std::to_string(last);
  }
  return untold > 0 ? text + " and " + std::to_string(untold) + " more" : text;
}

std::vector<RankRange> ranges_of(std::vector<int> ranks) {
  std::sort(ranks.begin(), ranks.end());
  std::vector<RankRange> ranges;
  for (const int rank : ranks) {
    if (!ranges.empty() && ranges.back().last >= rank - std::int64_t{1}) {
      ranges.back().last = rank;
    } else {
      ranges.push_back({rank, rank});
    }
  }
  return ranges;
}

/// What is in `ranges` and not in `told`, which is sorted.
std::vector<RankRange> without(const std::vector<RankRange>& ranges, const std::vector<int>& told) {
  std::vector<RankRange> rest;
  for (const RankRange range : ranges) {
    std::int64_t first = range.first;
    auto next = std::lower_bound(told.begin(), told.end(), range.first);
    for (; next != told.end() && *next <= range.last; ++next) {
      if (first < *next) rest.push_back({static_cast<int>(first), *next - 1});
      first = *next + std::int64_t{1};
    }
    if (first <= range.last) rest.push_back({static_cast<int>(first), range.last});
  }
  return rest;
}

std::string ranks_of(const Error& error) {
  std::vector<std::string> texts;
  std::vector<int> told;
  std::vector<int> absent;
  std::vector<int> untold;
  for (const RankReport& report : error.ranks) {
    if (!report.joined) {
      absent.push_back(report.rank);
    } else if (texts.size() < full_max) {
      texts.push_back(full_text_of(report));
      told.push_back(report.rank);
    } else {
      untold.push_back(report.rank);
    }
  }
  if (!absent.empty()) texts.push_back(text_of(ranges_of(absent)) + " (never joined)");
  told.insert(told.end(), absent.begin(), absent.end());
  std::sort(told.begin(), told.end());
  texts.push_back(error.rank_ranges.empty() ? text_of(ranges_of(untold))
                                            : text_of(without(error.rank_ranges, told)));
  const std::string text = joined(texts, " and ");
  return text.empty() ? "" : std::string(base::role_of_ranks(error.code)) + text;
}

std::string numbers_of(const Error& error) {
  const std::string actual = "got " + std::to_string(error.actual);
  if (error.limit != 0) return "limit " + std::to_string(error.limit) + ", " + actual;
  if (error.code == ErrorCode::nccl) {
    return error.actual == 0 ? "" : "ncclResult_t " + std::to_string(error.actual);
  }
  if (error.code == ErrorCode::expired) return "sequence " + std::to_string(error.actual);
  if (error.expected == 0 && error.actual == 0) return "";
  if (error.code == ErrorCode::server_restarted) {
    return "incarnation " + std::to_string(error.expected) + " is over, " +
           std::to_string(error.actual) + " answers";
  }
  return "expected " + std::to_string(error.expected) + ", " + actual;
}

std::string decision_of(const Error& error) {
  const std::string decider = error.decided_by_rank >= 0
                                  ? "rank " + std::to_string(error.decided_by_rank)
                                  : one_line(error.decided_by);
  if (decider.empty()) return "";
  std::string text = "decided by " + decider;
  if (error.decided_by_timeout > Duration::zero()) {
    text += " (timeout " + text_of(error.decided_by_timeout) + ")";
  }
  return text;
}

}  // namespace

std::string Error::message() const {
  std::string name(name_of(code));
  if (name == "unknown") name = "error " + std::to_string(static_cast<unsigned>(code));
  const std::string cause_text =
      cause == LossCause::none ? "" : "cause " + std::string(name_of(cause));
  const std::string facts =
      joined({ranks_of(*this), cause_text, numbers_of(*this), decision_of(*this),
              where.empty() ? "" : "at " + one_line(where), one_line(detail),
              std::string(base::advice_for(*this))},
             "; ");
  return joined({name, subject_of(*this), facts}, ": ");
}

MUSTER_END_NAMESPACE
