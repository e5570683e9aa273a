#include "core/groups/history/history.h"

#include <algorithm>

#include "base/rank_ranges.h"
#include "core/groups/roster.h"
#include "core/session/page.h"
#include "wire/error_body.h"

namespace muster::core {
namespace {

constexpr std::size_t records_of_group_max = 128;
/// So many ranks are told of in full; the others are counted.
constexpr std::size_t ranks_max = 8;
/// What one cause brings about for many comes within this time.
constexpr Duration of_one_cause = std::chrono::milliseconds(100);
/// What somebody tries again and again.
constexpr Duration of_one_loop = std::chrono::minutes(1);
/// A node of the maps and their links, about.
constexpr std::uint64_t place_bytes = 224;

bool is_of_ranks(GroupEventKind what) {
  return what == GroupEventKind::rank_lost || what == GroupEventKind::rank_left;
}

Duration gap_max(GroupEventKind what) {
  return is_of_ranks(what) || what == GroupEventKind::join_timed_out ? of_one_cause : of_one_loop;
}

bool may_repeat(GroupEventKind what) {
  return is_of_ranks(what) || what == GroupEventKind::join_timed_out ||
         what == GroupEventKind::join_refused || what == GroupEventKind::round_failed;
}

/// The error as it is kept: what the record says itself is not said again.
std::string kept(Error error) {
  error.group.clear();
  error.epoch = 0;
  if (error.ranks.size() > ranks_max) error.ranks.resize(ranks_max);
  std::string body;
  wire::append_error(body, error);
  return body;
}

/// What those who ask are told of ranks, of which the first were kept.
Error error_of(GroupEventKind what, const std::vector<RankReport>& ranks) {
  Error error;
  error.code = what == GroupEventKind::rank_lost ? ErrorCode::rank_lost : ErrorCode::rank_left;
  error.decided_by = "server";
  error.ranks = ranks;
  std::sort(error.ranks.begin(), error.ranks.end(),
            [](const RankReport& left, const RankReport& right) { return left.rank < right.rank; });
  error.cause = error.ranks.front().cause;
  for (const RankReport& report : error.ranks) {
    base::add_to(error.rank_ranges, report.rank);
    if (report.cause != error.cause) error.cause = LossCause::none;
  }
  return error;
}

std::uint64_t bytes_of(const ProcessInfo& process) {
  return sizeof(RankReport) + process.host.size() + process.label.size();
}

std::uint64_t encoded_bytes(const wire::HistoryRecord& record, std::uint64_t error_bytes) {
  const std::uint64_t of_process = record.process ? core::encoded_bytes(*record.process) : 0;
  return wire::item_bytes_min<wire::HistoryRecord> + record.group.size() + of_process + error_bytes;
}

}  // namespace

std::uint64_t History::Record::bytes() const {
  std::uint64_t bytes = sizeof(Record) + place_bytes + group.size() + tenant.size() + error.size();
  if (process) bytes += bytes_of(*process);
  for (const RankReport& report : ranks) bytes += bytes_of(report.process);
  return bytes;
}

std::optional<Error> History::Record::told_error() const {
  const auto why = has_error ? wire::decode_error(static_cast<std::uint16_t>(code), error)
                             : std::optional<Error>();
  if (ranks.empty()) return why;
  Error of_ranks = error_of(what, ranks);
  if (why) {
    of_ranks.decided_by = why->decided_by;
    of_ranks.detail = why->detail;
  }
  return of_ranks;
}

History::Record History::made_of(const Occurrence& occurrence) const {
  Record record;
  record.first = record.last = services_.now();
  record.what = occurrence.what;
  record.epoch = occurrence.epoch;
  record.world_size = occurrence.world_size;
  record.group = occurrence.group;
  record.tenant = occurrence.tenant;
  if (occurrence.process != nullptr) record.process = *occurrence.process;
  if (occurrence.member != nullptr) record.ranks = {report_of(services_, *occurrence.member)};
  if (occurrence.why == nullptr) return record;
  record.has_error = true;
  record.code = occurrence.why->code;
  record.error = kept(*occurrence.why);
  return record;
}

/// Whether it is the same once more.
bool History::repeats(const Record& last, const Occurrence& occurrence) const {
  const ProcessId by = occurrence.process != nullptr ? occurrence.process->id : ProcessId{};
  const ProcessId last_by = last.process ? last.process->id : ProcessId{};
  const ErrorCode code = occurrence.why != nullptr ? occurrence.why->code : ErrorCode{};
  // Of ranks that somebody has ended, who and why is the same for all that a record counts.
  if (is_of_ranks(occurrence.what)) {
    const std::string why = occurrence.why != nullptr ? kept(*occurrence.why) : std::string();
    if (last.error != why) return false;
  }
  return may_repeat(occurrence.what) && last.what == occurrence.what &&
         last.epoch == occurrence.epoch && last.code == code && last_by == by &&
         services_.now() - last.last <= gap_max(occurrence.what);
}

void History::count_once_more(Record& last, const Occurrence& occurrence) const {
  last.last = services_.now();
  ++last.count;
  if (occurrence.member == nullptr || last.ranks.size() >= ranks_max) return;
  last.ranks.push_back(report_of(services_, *occurrence.member));
}

void History::record(std::string_view name_space, const Occurrence& occurrence) {
  auto page = pages_.find(name_space);
  if (page == pages_.end()) {
    page = pages_.emplace(std::string(name_space), Page{}).first;
    by_size_.emplace(0, &page->first);
  }
  std::map<std::uint64_t, Record>& records = page->second.records;
  const auto of_group = page->second.of_groups.find(occurrence.group);
  if (of_group != page->second.of_groups.end()) {
    Record& last = records.find(of_group->second.back())->second;
    if (repeats(last, occurrence)) {
      const std::uint64_t others_bytes = page->second.bytes - last.bytes();
      count_once_more(last, occurrence);
      note_change(page->first, last);
      resize(page, others_bytes + last.bytes());
      return keep_limit();
    }
    if (of_group->second.size() == records_of_group_max) {
      drop(page, records.find(of_group->second.front()));
    }
  }
  Record record = made_of(occurrence);
  record.serial = ++last_serial_;
  page->second.of_groups[record.group].push_back(record.serial);
  resize(page, page->second.bytes + record.bytes());
  const auto made = records.emplace(record.serial, std::move(record)).first;
  note_change(page->first, made->second);
  keep_limit();
}

void History::note_change(const std::string& name_space, Record& record) {
  if (record.change != 0) by_change_.erase(record.change);
  record.change = ++last_change_;
  by_change_.emplace_hint(by_change_.end(), record.change, std::pair(&name_space, record.serial));
}

void History::keep_limit() {
  while (bytes_ > bytes_max()) drop_oldest_of_the_largest();
}

std::uint64_t History::bytes_max() const {
  const Options& options = services_.options();
  return std::min(options.history_bytes_max, options.memory_bytes_max / 64);
}

void History::resize(Pages::iterator page, std::uint64_t bytes) {
  if (page->second.bytes == bytes) return;
  by_size_.erase({page->second.bytes, &page->first});
  bytes_ = bytes_ - page->second.bytes + bytes;
  page->second.bytes = bytes;
  by_size_.emplace(bytes, &page->first);
}

void History::drop(Pages::iterator page, std::map<std::uint64_t, Record>::iterator record) {
  const auto of_group = page->second.of_groups.find(record->second.group);
  of_group->second.pop_front();  // it is the oldest one of its group
  if (of_group->second.empty()) page->second.of_groups.erase(of_group);
  const std::uint64_t bytes = page->second.bytes - record->second.bytes();
  by_change_.erase(record->second.change);
  page->second.records.erase(record);
  ++page->second.dropped_count;
  resize(page, bytes);
}

void History::drop_oldest_of_the_largest() {
  const auto page = pages_.find(*by_size_.rbegin()->second);
  drop(page, page->second.records.begin());
  if (!page->second.records.empty()) return;
  by_size_.erase({page->second.bytes, &page->first});
  pages_.erase(page);
}

wire::HistoryRecord History::told(const Record& record) const {
  wire::HistoryRecord told;
  told.serial = record.serial;
  told.what = record.what;
  told.age = services_.now() - record.first;
  told.lasted = record.last - record.first;
  told.count = record.count;
  told.group = record.group;
  told.epoch = record.epoch;
  told.world_size = record.world_size;
  told.process = record.process;
  told.error = record.told_error();
  told.has_error = told.error.has_value();
  return told;
}

template <class F>
void History::search(std::string_view name_space, std::string_view group, std::string_view tenant,
                     const F& is_found) const {
  const auto page = pages_.find(name_space);
  if (page == pages_.end()) return;
  const auto of_group = page->second.of_groups.find(group);
  if (of_group == page->second.of_groups.end()) return;
  const auto& serials = of_group->second;
  for (auto serial = serials.rbegin(); serial != serials.rend(); ++serial) {
    const Record& record = page->second.records.at(*serial);
    if (record.tenant == tenant && is_found(record)) return;
  }
}

std::optional<History::End> History::last_end(std::string_view name_space, std::string_view group,
                                              std::string_view tenant, int rank) const {
  std::optional<End> end;
  search(name_space, group, tenant, [&](const Record& record) {
    for (const RankReport& report : record.ranks) {
      if (report.rank == rank) end = End{record.what, record.epoch, report};
    }
    return end.has_value();
  });
  return end;
}

std::optional<History::Refusal> History::last_mismatch(std::string_view name_space,
                                                       std::string_view group,
                                                       std::string_view tenant,
                                                       Instant since) const {
  std::optional<Refusal> refusal;
  search(name_space, group, tenant, [&](const Record& record) {
    const bool is_mismatch = record.what == GroupEventKind::join_refused &&
                             record.code == ErrorCode::group_mismatch && record.process;
    if (!is_mismatch || record.last < since) return false;
    const auto why = record.told_error();
    refusal = Refusal{*record.process, why ? why->detail : std::string(), record.last};
    return true;
  });
  return refusal;
}

std::vector<History::Change> History::changes(std::uint64_t after, std::size_t count_max) const {
  std::vector<Change> changes;
  for (auto next = by_change_.upper_bound(after); next != by_change_.end(); ++next) {
    if (changes.size() == count_max) break;
    const auto& [name_space, serial] = next->second;
    const Record& record = pages_.find(*name_space)->second.records.at(serial);
    wire::HistoryReply reply;
    reply.records.push_back(told(record));
    Change& change = changes.emplace_back(Change{next->first, *name_space, record.first, {}});
    wire::append_body(change.body, reply);
  }
  return changes;
}

/// returns  whether the page is full with it
bool History::add_to(wire::HistoryReply& reply, const Record& record, const Viewer& viewer,
                     std::uint64_t& bytes) const {
  if (!viewer.may_see(record.tenant)) return false;
  reply.records.push_back(told(record));
  bytes += encoded_bytes(reply.records.back(), record.bytes());
  return bytes >= page_bytes_max;
}

wire::HistoryReply History::page(std::string_view name_space, const Viewer& viewer,
                                 const wire::History& request) const {
  wire::HistoryReply reply;
  reply.known_for = services_.now() - services_.clock().start();
  const auto page = pages_.find(name_space);
  if (page != pages_.end()) {
    const auto& [records, of_groups, size_bytes, dropped_count] = page->second;
    reply.forgotten = dropped_count;
    std::uint64_t bytes = 0;
    std::uint64_t looked_at = 0;
    if (request.group.empty()) {
      for (auto next = records.upper_bound(request.after); next != records.end(); ++next) {
        ++looked_at;
        if (add_to(reply, next->second, viewer, bytes)) break;
      }
    } else if (const auto group = of_groups.find(request.group); group != of_groups.end()) {
      const auto& serials = group->second;
      for (auto next = std::upper_bound(serials.begin(), serials.end(), request.after);
           next != serials.end(); ++next) {
        ++looked_at;
        if (add_to(reply, records.at(*next), viewer, bytes)) break;
      }
    }
    const std::uint64_t unseen_count = looked_at - reply.records.size();
    services_.effects().spend(reply.records.size() + unseen_count / unseen_per_step);
  }
  return reply;
}

}  // namespace muster::core
