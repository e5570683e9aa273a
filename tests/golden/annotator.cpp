#include "annotator.h"

#include <array>

#include "wire/error_tags.h"

namespace muster::golden {
namespace {

std::string little_endian(std::uint64_t value, std::size_t count) {
  std::string bytes;
  for (std::size_t index = 0; index < count; ++index) {
    bytes += static_cast<char>(static_cast<unsigned char>(value >> (8 * index)));
  }
  return bytes;
}

std::string_view name_of(wire::ErrorTag tag) {
  constexpr std::array<std::string_view, 18> names = {"",
                                                      "operation",
                                                      "group",
                                                      "epoch",
                                                      "round",
                                                      "elapsed",
                                                      "decided_by",
                                                      "decided_by_rank",
                                                      "decided_by_timeout",
                                                      "where",
                                                      "rank",
                                                      "rank_ranges",
                                                      "cause",
                                                      "expected",
                                                      "actual",
                                                      "limit",
                                                      "detail",
                                                      "ends_session"};
  return names[static_cast<std::size_t>(tag)];
}

}  // namespace

std::string quoted_text(std::string_view bytes) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text = "\"";
  for (const char character : bytes) {
    const auto byte = static_cast<unsigned char>(character);
    if (byte >= 0x20 && byte < 0x7f && character != '"' && character != '\\') {
      text += character;
    } else {
      text += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
    }
  }
  return text + '"';
}

void Annotator::add(const std::string& name, std::string_view bytes, std::string_view value) {
  if (bytes.empty()) return;
  Note note;
  note.bytes = bytes.size();
  for (const std::string& part : prefix_) note.text += part;
  note.text += name;
  if (!value.empty()) note.text.append(" = ").append(value);
  bytes_ += bytes;
  notes_.push_back(std::move(note));
}

void Annotator::append(const Annotator& other) {
  bytes_ += other.bytes_;
  notes_.insert(notes_.end(), other.notes_.begin(), other.notes_.end());
}

void Annotator::number(const std::string& name, std::uint64_t value, std::size_t count,
                       std::string_view meaning) {
  std::string text = std::to_string(value);
  if (!meaning.empty()) text.append(" ").append(meaning);
  add(name, little_endian(value, count), text);
}

void Annotator::raw(const std::string& name, std::string_view bytes) {
  std::size_t printable = 0;
  for (const char byte : bytes) printable += byte >= 0x20 && byte < 0x7f ? 1 : 0;
  add(name, bytes, printable == bytes.size() ? quoted_text(bytes) : "");
}

void Annotator::duration(const std::string& name, Duration value, std::size_t count) {
  number(name, static_cast<std::uint64_t>(value.count()), count, "us");
}

void Annotator::note(const std::string& name, std::int64_t value) {
  add(name, little_endian(static_cast<std::uint64_t>(value), 8), std::to_string(value));
}

void Annotator::note(const std::string& name, std::string_view value) {
  number(name + " length", value.size(), 4);
  raw(name, value);
}

void Annotator::note(const std::string& name, const ProcessId& id) {
  add(name, {reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size()}, to_string(id));
}

void Annotator::note(const std::string& name, const ProcessInfo& process) {
  note(name + ".id", process.id);
  note(name + ".pid", process.pid);
  note(name + ".host", std::string_view(process.host));
  note(name + ".label", std::string_view(process.label));
}

void Annotator::note(const std::string& name, RankRange range) {
  number(name + ".first", static_cast<std::uint64_t>(range.first), 4);
  number(name + ".last", static_cast<std::uint64_t>(range.last), 4);
}

void Annotator::note(const std::string& name,
                     const std::pair<std::string_view, std::string_view>& pair) {
  note(name + ".name", pair.first);
  note(name + ".value", pair.second);
}

void Annotator::note(const std::string& name, wire::Collective value) {
  number(name, static_cast<std::uint64_t>(value), 1, wire::name_of(value));
}

void Annotator::note(const std::string& name, wire::ListKind value) {
  number(name, static_cast<std::uint64_t>(value), 1,
         value == wire::ListKind::keys ? "keys" : "objects");
}

void Annotator::note(const std::string& name, wire::MemberState value) {
  constexpr std::array<std::string_view, 6> names = {"live", "silent",    "lost",
                                                     "left", "candidate", "away"};
  const auto index = static_cast<std::size_t>(value);
  number(name, index, 1, names[index]);
}

void Annotator::note(const std::string& name, wire::RoundState value) {
  constexpr std::array<std::string_view, 4> names = {"none", "not_called", "done", "failed"};
  const auto index = static_cast<std::size_t>(value);
  number(name, index, 1, names[index]);
}

void Annotator::note(const std::string& name, GroupEventKind value) {
  number(name, static_cast<std::uint8_t>(value), 1, name_of(value));
}

void Annotator::note(const std::string& name, SettingKind value) {
  constexpr const char* names[] = {"number", "bytes", "duration", "level"};
  const auto index = static_cast<std::uint8_t>(value);
  number(name, index, 1, names[index]);
}

void Annotator::note(const std::string& name, const std::optional<Error>& error) {
  Annotator inner;
  inner.error_fields(*error);
  number(name + ".code", static_cast<std::uint64_t>(error->code), 2, muster::name_of(error->code));
  number(name + " length", inner.bytes().size(), 4);
  prefix_.push_back(name + ".");
  error_fields(*error);
  prefix_.pop_back();
}

void Annotator::error_fields(const Error& error) {
  const auto head = [this](wire::ErrorTag tag, std::size_t length) {
    const std::string name(name_of(tag));
    number(name + " tag", static_cast<std::uint64_t>(tag), 1);
    number(name + " length", length, 4);
    return name;
  };
  const auto text = [&](wire::ErrorTag tag, std::string_view value) {
    if (!value.empty()) raw(head(tag, value.size()), value);
  };
  const auto u64 = [&](wire::ErrorTag tag, std::uint64_t value) {
    if (value != 0) number(head(tag, 8), value, 8);
  };
  const auto time = [&](wire::ErrorTag tag, Duration value) {
    if (value.count() != 0) duration(head(tag, 8), value, 8);
  };
  text(wire::ErrorTag::operation, error.operation);
  text(wire::ErrorTag::group, error.group);
  u64(wire::ErrorTag::epoch, error.epoch);
  u64(wire::ErrorTag::round, error.round);
  time(wire::ErrorTag::elapsed, error.elapsed);
  text(wire::ErrorTag::decided_by, error.decided_by);
  if (error.decided_by_rank >= 0) {
    number(head(wire::ErrorTag::decided_by_rank, 4),
           static_cast<std::uint64_t>(error.decided_by_rank), 4);
  }
  time(wire::ErrorTag::decided_by_timeout, error.decided_by_timeout);
  text(wire::ErrorTag::where, error.where);
  for (const RankReport& report : error.ranks) {
    Annotator sizing;
    const auto fill = [&report](Annotator& into) {
      into.number("rank.rank", static_cast<std::uint64_t>(report.rank), 4);
      into.note("rank.joined", report.joined);
      into.note("rank.process", report.process);
      into.note("rank.silence", report.silence);
      into.note("rank.called", std::string_view(report.called));
      if (report.cause == LossCause::none) return;
      into.number("rank.cause tag", static_cast<std::uint64_t>(wire::RankTag::cause), 1);
      into.number("rank.cause length", 1, 4);
      into.number("rank.cause", static_cast<std::uint64_t>(report.cause), 1,
                  muster::name_of(report.cause));
    };
    fill(sizing);
    head(wire::ErrorTag::rank, sizing.bytes().size());
    fill(*this);
  }
  if (!error.rank_ranges.empty()) {
    note(head(wire::ErrorTag::rank_ranges, 4 + 8 * error.rank_ranges.size()), error.rank_ranges);
  }
  if (error.cause != LossCause::none) {
    number(head(wire::ErrorTag::cause, 1), static_cast<std::uint64_t>(error.cause), 1,
           muster::name_of(error.cause));
  }
  u64(wire::ErrorTag::expected, error.expected);
  u64(wire::ErrorTag::actual, error.actual);
  u64(wire::ErrorTag::limit, error.limit);
  text(wire::ErrorTag::detail, error.detail);
}

void Annotator::ends_session(bool value) {
  number("ends_session tag", static_cast<std::uint64_t>(wire::ErrorTag::ends_session), 1);
  number("ends_session length", 1, 4);
  note("ends_session", value);
}

}  // namespace muster::golden
