#include "stream.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "json/bytes.h"
#include "view_json.h"

namespace musterd {
namespace {

using muster::Duration;
using std::chrono::system_clock;

constexpr std::size_t gone_max = 4096;
constexpr std::size_t events_max = 1024;
constexpr auto events_age_max = std::chrono::hours(1);
constexpr std::size_t name_spaces_max = 16;  ///< whose keys are counted
constexpr std::size_t prefixes_max = 256;
/// Of all groups together. Beyond it they are counted.
constexpr std::size_t groups_bytes_max = 8U << 20;
/// An overview that is older is of a server that hangs, or is what was left of the last viewer.
constexpr Duration fresh = std::chrono::seconds(3);
/// From when on a server that tells nothing new to its viewers does not turn, as of /healthz.
constexpr Duration stalled_after = std::chrono::seconds(10);

std::string in_quotes(std::string_view name) { return '"' + std::string(name) + '"'; }

/// Two digits count: else it would differ all the time.
std::uint64_t rounded(double value) {
  if (value < 10) return static_cast<std::uint64_t>(std::llround(value));
  const double unit = std::pow(10.0, std::floor(std::log10(value)) - 1);
  return static_cast<std::uint64_t>(std::llround(std::round(value / unit) * unit));
}

std::string joined(const std::vector<const std::string*>& texts) {
  std::size_t size = 2;
  for (const std::string* text : texts) size += text->size() + 1;
  std::string all;
  all.reserve(size);
  all += '[';
  for (const std::string* text : texts) {
    if (all.size() > 1) all += ',';
    all += *text;
  }
  return all += ']';
}

}  // namespace

Stream::Piece Stream::next(std::uint64_t known, const Json& server) {
  const auto overview = watch_.overview({});
  if (overview == nullptr) return {};
  const auto wall_now = system_clock::now();
  const Duration age = std::chrono::duration_cast<Duration>(wall_now - overview->now);
  if (age >= fresh && known == 0) return {};
  now_ = age < fresh ? overview->now : wall_now;
  Json document = server;
  document["stalled"] = age >= stalled_after;
  if (overview_ == nullptr || overview->number != overview_->number) {
    texts_.clear();  // in which the time is told
    take(*overview, document);
  } else if (std::string text = muster::json::line_of(document); parts_["server"].text != text) {
    texts_.clear();
    parts_["server"] = {std::move(text), ++version_};
  }
  overview_ = overview;
  if (known == version_) return {{}, version_};
  const bool knows_gone = known >= gone_known_from_ && known <= version_;
  const std::uint64_t from = knows_gone ? known : 0;
  auto found = texts_.find(from);
  if (found == texts_.end()) {
    // Few versions are known by anybody: who is slow has one of his own.
    if (texts_.size() >= 4) texts_.clear();
    found = texts_.emplace(from, from == 0 ? whole() : change_since(from)).first;
  }
  return {found->second, version_};
}

void Stream::take(const muster::Overview& overview, const Json& server) {
  ++version_;
  has_changed_ = version_ == 1;
  take_groups(overview);
  take_events(overview);
  look_at_keys(overview);
  set_part("server", muster::json::line_of(server));
  set_part("limits", muster::json::line_of(json_of(overview.limits)));
  set_part("sessions",
           muster::json::line_of(
               {{"connected", overview.connections},
                {"away", overview.sessions - std::min(overview.sessions, overview.connections)}}));
  set_part("keys",
           muster::json::line_of(
               {{"count", overview.keys}, {"bytes", keys_.bytes}, {"prefixes", keys_.prefixes}}));
  set_part("waits", muster::json::line_of(json_of_waits(overview)));
  std::uint64_t rate = 0;
  if (overview_ != nullptr && overview.now > overview_->now) {
    const std::chrono::duration<double> time = overview.now - overview_->now;
    rate = rounded(static_cast<double>(overview.operations - operations_) / time.count());
  }
  operations_ = overview.operations;
  set_part("rates", muster::json::line_of({{"operations", rate}}));
  if (has_changed_) {
    forget();
  } else {
    --version_;
  }
}

void Stream::set_part(const char* name, std::string text) {
  Part& part = parts_[name];
  if (part.text == text) return;
  part = {std::move(text), version_};
  has_changed_ = true;
}

void Stream::take_groups(const muster::Overview& overview) {
  std::size_t bytes = 0;
  std::uint64_t told_count = 0;
  for (auto& [name, group] : groups_) group.is_seen = false;
  for (const auto& view : overview.groups) {
    if (bytes > groups_bytes_max) break;
    const auto [place, is_new] = groups_.try_emplace({view->name_space, view->name});
    Group& group = place->second;
    group.is_seen = true;
    if (is_new) gone_.erase(place->first);
    if (group.view != view) {
      std::string text = muster::json::line_of(json_of(*view));
      if (group.text != text) {
        group.text = std::move(text);
        group.changed = version_;
        has_changed_ = true;
      }
      group.view = view;
    }
    bytes += group.text.size();
    ++told_count;
  }
  for (auto each = groups_.begin(); each != groups_.end();) {
    if (each->second.is_seen) {
      ++each;
      continue;
    }
    const auto& [name_space, name] = each->first;
    Json gone = {name_space, name};
    if (!muster::json::is_utf8(name)) gone.push_back(muster::json::base64(name));
    gone_[each->first] = {version_, muster::json::line_of(gone)};
    has_changed_ = true;
    each = groups_.erase(each);
  }
  set_part("groups_left_out", std::to_string(overview.groups_count - told_count));
}

void Stream::take_events(const muster::Overview& overview) {
  if (overview.last_change <= last_change_) return;
  for (auto& event : watch_.events(last_change_, events_max)) {
    last_change_ = std::max(last_change_, event->change);
    events_.push_back({version_, std::move(event)});
    has_changed_ = true;
  }
}

/// What is old goes.
void Stream::forget() {
  if (gone_.size() > gone_max) {
    gone_known_from_ = version_;
    gone_.clear();
  }
  while (events_.size() > events_max) {
    gone_known_from_ = std::max(gone_known_from_, events_.front().version);
    events_.pop_front();
  }
}

void Stream::look_at_keys(const muster::Overview& overview) {
  if (overview.now < keys_.next) return;
  if (!keys_.to_look_at) {
    auto name_spaces = watch_.namespaces({});
    if (!name_spaces) return;
    std::stable_sort(name_spaces->begin(), name_spaces->end(),
                     [](const auto& left, const auto& right) { return left.keys > right.keys; });
    keys_.to_look_at.emplace();
    keys_.seen.clear();
    for (const auto& each : *name_spaces) {
      if (each.keys == 0 || keys_.to_look_at->size() == name_spaces_max) break;
      keys_.to_look_at->push_back(each.name);
    }
  }
  while (!keys_.to_look_at->empty()) {
    auto prefixes = watch_.prefixes(keys_.to_look_at->back(), 1, {});
    if (!prefixes && prefixes.error().code == muster::ErrorCode::unavailable) return;
    if (prefixes) keys_.seen.emplace_back(keys_.to_look_at->back(), std::move(*prefixes));
    keys_.to_look_at->pop_back();
  }
  sum_up_keys();
  keys_.to_look_at.reset();
  // A walk over all keys costs some: the more there are, the less often.
  const auto pause = std::chrono::seconds(1 + overview.keys / 10'000);
  keys_.next = overview.now + std::min<std::chrono::seconds>(pause, std::chrono::minutes(10));
}

void Stream::sum_up_keys() {
  std::vector<std::pair<std::string, muster::KeyPrefix>> all;
  keys_.bytes = 0;
  for (const auto& [name_space, prefixes] : keys_.seen) {
    keys_.bytes += prefixes.other_value_bytes;
    for (const muster::KeyPrefix& prefix : prefixes.prefixes) {
      keys_.bytes += prefix.value_bytes;
      all.emplace_back(name_space, prefix);
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& left, const auto& right) {
    return left.second.value_bytes > right.second.value_bytes;
  });
  all.resize(std::min(all.size(), prefixes_max));
  keys_.prefixes = Json::array();
  for (const auto& [name_space, prefix] : all) {
    Json json;
    muster::json::add_bytes(json, "namespace", name_space);
    muster::json::add_bytes(json, "prefix", prefix.prefix);
    json["count"] = prefix.keys;
    json["bytes"] = prefix.value_bytes;
    keys_.prefixes.push_back(std::move(json));
  }
}

/// Of what has happened several times since, the last.
std::string Stream::events_since(std::uint64_t version) const {
  std::set<std::uint64_t> told;
  std::vector<std::string> texts;
  for (auto each = events_.rbegin(); each != events_.rend() && each->version > version; ++each) {
    const muster::WatchedEvent& event = *each->event;
    const bool is_old = overview_ != nullptr && overview_->now - event.at > events_age_max;
    if (is_old || !told.insert(event.event.serial).second) continue;
    const auto now = overview_ != nullptr ? overview_->now : event.at;
    texts.push_back(muster::json::line_of(json_of(event, now)));
  }
  std::vector<const std::string*> in_order;
  for (auto each = texts.rbegin(); each != texts.rend(); ++each) in_order.push_back(&*each);
  return joined(in_order);
}

std::string Stream::whole() const {
  std::string members;
  for (const auto& [name, part] : parts_) members += in_quotes(name) + ":" + part.text + ",";
  std::vector<const std::string*> groups;
  for (const auto& [name, group] : groups_) groups.push_back(&group.text);
  const auto known_for =
      std::chrono::duration_cast<std::chrono::milliseconds>(overview_->known_for);
  members += "\"known_for_ms\":" + std::to_string(known_for.count()) +
             ",\"groups\":" + joined(groups) + ",\"events\":" + events_since(0);
  return message("whole", std::move(members));
}

std::string Stream::change_since(std::uint64_t version) const {
  std::string members;
  for (const auto& [name, part] : parts_) {
    if (part.changed > version) members += in_quotes(name) + ":" + part.text + ",";
  }
  std::vector<const std::string*> groups;
  for (const auto& [name, group] : groups_) {
    if (group.changed > version) groups.push_back(&group.text);
  }
  if (!groups.empty()) members += "\"groups\":" + joined(groups) + ",";
  std::vector<const std::string*> gone;
  for (const auto& [name, each] : gone_) {
    if (each.version > version) gone.push_back(&each.text);
  }
  if (!gone.empty()) members += "\"gone\":" + joined(gone) + ",";
  if (!events_.empty() && events_.back().version > version)
    members += "\"events\":" + events_since(version) + ",";
  if (!members.empty()) members.pop_back();
  return message("change", std::move(members));
}

std::string Stream::message(const char* event, std::string members) const {
  std::string text = "event: " + std::string(event) + "\nid: " + std::to_string(version_) +
                     "\ndata: {\"now\":" + std::to_string(unix_ms(now_));
  if (!members.empty()) text += ",";
  return text.append(members).append("}\n\n");
}

}  // namespace musterd
