#include <algorithm>
#include <vector>

#include "base/error/error_advice.h"
#include "base/text.h"
#include "muster/error.h"
#include "muster/log.h"

// The line is built in the order in which people ask:
//
//    code: operation of group "name" (epoch, round or stream) after elapsed: ranks; cause; numbers;
//    decided by whom; at address; detail; whether it happened; what to do
//
// Names come from other processes, so all of them are made printable. The line's length is bounded
// by `full_max` and `base::text_of`, however many ranks are at fault.

MUSTER_BEGIN_NAMESPACE
namespace {

constexpr std::size_t full_max = 8;  // ranks told of with host, pid and label

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

std::string text_of(const StreamPosition& stream) {
  return "from rank " + std::to_string(stream.source) + " to rank " +
         std::to_string(stream.destination) + ", tag " + std::to_string(stream.tag) +
         ", sequence " + std::to_string(stream.sequence);
}

std::string subject_of(const Error& error) {
  std::string numbers;
  if (error.epoch != 0) numbers = "epoch " + std::to_string(error.epoch);
  if (error.round != 0) {
    if (!numbers.empty()) numbers += ", ";
    numbers += "round " + std::to_string(error.round);
  }
  if (error.stream) {
    if (!numbers.empty()) numbers += ", ";
    numbers += text_of(*error.stream);
  }
  std::string group;
  if (!error.group.empty()) {
    group = (error.operation.empty() ? "group " : "of group ") + base::shown_in_quotes(error.group);
  }
  return joined({base::shown(error.operation), group, numbers.empty() ? "" : "(" + numbers + ")",
                 error.elapsed > Duration::zero() ? "after " + base::rounded(error.elapsed) : ""},
                " ");
}

/// What is told of all ranks together is not told of each.
std::string full_text_of(const RankReport& report, LossCause common) {
  const LossCause own = common == LossCause::none ? report.cause : LossCause::none;
  const ProcessInfo& process = report.process;
  const std::string about =
      joined({process.host.empty() ? "" : "host " + base::shown(process.host),
              process.pid == 0 ? "" : "pid " + std::to_string(process.pid),
              process.label.empty() ? "" : "label " + base::shown(process.label),
              report.silence ? "silent for " + base::rounded(*report.silence) : "",
              own == LossCause::none ? "" : "cause " + std::string(name_of(own)),
              report.called.empty() ? "" : "called " + base::shown(report.called)},
             ", ");
  const std::string who =
      report.rank < 0 ? "the server's process" : "rank " + std::to_string(report.rank);
  return who + (about.empty() ? "" : " (" + about + ")");
}

/// "rank 3", or "ranks 3-5, 9"
std::string named(const std::vector<RankRange>& ranges) {
  if (ranges.empty()) return "";
  const bool is_one = ranges.size() == 1 && ranges[0].first == ranges[0].last;
  return (is_one ? "rank " : "ranks ") + base::text_of(ranges);
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
      texts.push_back(full_text_of(report, error.cause));
      told.push_back(report.rank);
    } else {
      untold.push_back(report.rank);
    }
  }
  if (!absent.empty()) texts.push_back(named(ranges_of(absent)) + " (never joined)");
  told.insert(told.end(), absent.begin(), absent.end());
  std::sort(told.begin(), told.end());
  texts.push_back(error.rank_ranges.empty() ? named(ranges_of(untold))
                                            : named(without(error.rank_ranges, told)));
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
  // By the detail, in its unit.
  const bool are_told = error.code == ErrorCode::group_mismatch ||
                        (error.code == ErrorCode::resource_exhausted && error.expected == 0);
  if (are_told || (error.expected == 0 && error.actual == 0)) return "";
  if (error.code == ErrorCode::codec_mismatch) {
    const std::string what = base::tells_of_types(error) ? "type " : "codec ";
    return "expected " + what + std::to_string(error.expected) + ", got " + what +
           std::to_string(error.actual);
  }
  if (error.code == ErrorCode::server_restarted) {
    return "incarnation " + std::to_string(error.expected) + " is over, " +
           std::to_string(error.actual) + " answers";
  }
  return "expected " + std::to_string(error.expected) + ", " + actual;
}

std::string_view text_of(Happened happened) {
  switch (happened) {
    case Happened::unsaid: break;
    case Happened::no: return "it did not happen";
    case Happened::maybe: return "it may have happened, look before you repeat it";
  }
  return "";
}

std::string decision_of(const Error& error) {
  const std::string decider = error.decided_by_rank >= 0
                                  ? "rank " + std::to_string(error.decided_by_rank)
                                  : base::shown(error.decided_by);
  if (decider.empty()) return "";
  std::string text = "decided by " + decider;
  if (error.decided_by_timeout > Duration::zero()) {
    text += " (timeout " + base::rounded(error.decided_by_timeout) + ")";
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
              where.empty() ? "" : "at " + base::shown(where), printable(detail),
              std::string(text_of(happened)), std::string(base::advice_for(*this))},
             "; ");
  return joined({name, subject_of(*this), facts}, ": ");
}

MUSTER_END_NAMESPACE
