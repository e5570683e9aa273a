#include "gloo/presence.h"

#include <algorithm>
#include <utility>

#include "client/failure.h"
#include "communicator/report.h"

namespace muster::gloo {

using communicator::append_number;
using communicator::Cursor;
using communicator::Verdict;
using communicator::whose;

namespace {

constexpr char version_of_format = 1;

std::string text_of(std::uint32_t version) {
  return std::to_string(version / 10000) + '.' + std::to_string(version / 100 % 100) + '.' +
         std::to_string(version % 100);
}

/// `is_odd` of a presence and rank 0's.
template <class IsOdd>
std::optional<Verdict> differs(const std::vector<Presence>& presences, std::string detail,
                               IsOdd is_odd) {
  const auto is_that = [&](const Presence& each) { return is_odd(each, presences.front()); };
  if (std::none_of(presences.begin(), presences.end(), is_that)) return std::nullopt;
  return Verdict{client::failure(ErrorCode::mismatch, std::move(detail)),
                 whose(presences, std::move(is_odd))};
}

}  // namespace

std::string encode(const Presence& presence) {
  std::string out(1, version_of_format);
  append_number(out, static_cast<std::uint32_t>(presence.rank));
  append_number(out, presence.members);
  out.append(presence.process.bytes.begin(), presence.process.bytes.end());
  append_number(out, presence.terms);
  append_number(out, presence.version);
  append_number(out, presence.host);
  append_number(out, presence.family);
  append_number(out, static_cast<std::uint8_t>(presence.is_loopback));
  append_number(out, static_cast<std::uint32_t>(presence.addresses.size()));
  for (const std::string& address : presence.addresses) {
    append_number(out, static_cast<std::uint16_t>(address.size()));
    out += address;
  }
  communicator::append_trouble(out, presence.trouble);
  return out;
}

Result<Presence> decode_presence(std::string_view bytes, int world_size) {
  Cursor cursor(bytes);
  Presence presence;
  const char version = static_cast<char>(cursor.number<std::uint8_t>());
  presence.rank = static_cast<int>(cursor.number<std::uint32_t>());
  presence.members = cursor.number<std::uint64_t>();
  cursor.take(presence.process.bytes.data(), presence.process.bytes.size());
  presence.terms = cursor.number<std::uint64_t>();
  presence.version = cursor.number<std::uint32_t>();
  presence.host = cursor.number<std::uint64_t>();
  presence.family = cursor.number<std::uint8_t>();
  presence.is_loopback = cursor.number<std::uint8_t>() != 0;
  const auto count = cursor.number<std::uint32_t>();
  if (count != 0 && count != static_cast<std::uint32_t>(world_size)) {
    return communicator::no_part_of_making();
  }
  for (std::uint32_t index = 0; index < count; ++index) {
    std::string address(cursor.number<std::uint16_t>(), '\0');
    cursor.take(address.data(), address.size());
    presence.addresses.push_back(std::move(address));
  }
  presence.trouble = cursor.trouble();
  const bool is_whole = presence.trouble.has_value() == presence.addresses.empty();
  if (!cursor.is_good() || version != version_of_format || !is_whole) {
    return communicator::no_part_of_making();
  }
  return presence;
}

std::optional<Verdict> verdict_on(const std::vector<Presence>& presences) {
  if (auto verdict = communicator::verdict_on_presence(presences)) return verdict;
  const Presence& first = presences.front();
  if (auto verdict = differs(presences, "another Gloo than rank 0's " + text_of(first.version),
                             [](const Presence& each, const Presence& of_rank_0) {
                               return each.version != of_rank_0.version ||
                                      each.terms != of_rank_0.terms;
                             })) {
    return verdict;
  }
  if (auto verdict = differs(presences,
                             "an IPv" + std::to_string(first.family == 4 ? 6 : 4) +
                                 " address, rank 0 has an IPv" + std::to_string(first.family) +
                                 " one; set GlooOptions::address or GlooOptions::interface",
                             [](const Presence& each, const Presence& of_rank_0) {
                               return each.family != of_rank_0.family;
                             })) {
    return verdict;
  }
  const bool is_one_host = std::all_of(presences.begin(), presences.end(),
                                       [&](const auto& each) { return each.host == first.host; });
  if (is_one_host) return std::nullopt;
  return differs(presences,
                 "it listens on loopback, and not all ranks are on its host; set "
                 "GlooOptions::address or GlooOptions::interface",
                 [](const Presence& each, const Presence&) { return each.is_loopback; });
}

}  // namespace muster::gloo
