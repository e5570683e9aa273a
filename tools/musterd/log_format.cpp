#include "log_format.h"

#include <algorithm>
#include <array>
#include <optional>

// A message is a text, whose beginning says of what it is. Only there are fields looked for: behind
// it stands what clients call themselves, which may look like anything.

namespace musterd {
namespace {

std::string_view word_for(muster::LogLevel level) {
  switch (level) {
    case muster::LogLevel::debug: return "debug";
    case muster::LogLevel::info: return "info";
    case muster::LogLevel::warning: return "warning";
    case muster::LogLevel::error: return "error";
  }
  return "?";
}

constexpr std::size_t level_width = 7;

/// `text` has no control characters and is UTF-8: `printable` was applied.
void append_string(std::string& json, std::string_view text) {
  json += '"';
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') json += '\\';
    json += letter;
  }
  json += '"';
}

/// Reads a message from its beginning.
class MessageReader {
 public:
  explicit MessageReader(std::string_view rest) : rest_(rest) {}

  bool skip(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }

  /// Digits, which may be none.
  std::string_view number() {
    const std::size_t end = std::min(rest_.find_first_not_of("0123456789"), rest_.size());
    return take(end);
  }

  /// What stands in single quotes, in which there is none.
  std::optional<std::string_view> quoted_text() {
    const std::size_t end = rest_.find('\'', 1);
    if (!rest_.starts_with('\'') || end == rest_.npos) return std::nullopt;
    return take(end + 1).substr(1, end - 1);
  }

  std::string_view rest() const { return rest_; }

 private:
  std::string_view take(std::size_t size) {
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  std::string_view rest_;
};

void append_number(std::string& json, std::string_view name, std::string_view digits) {
  if (digits.empty()) return;
  json.append(",\"").append(name).append("\":").append(digits);
}

void append_text(std::string& json, std::string_view name, std::string_view text) {
  json.append(",\"").append(name).append("\":");
  append_string(json, text);
}

/// "group 'tp0' epoch 7 round 12: ..."
bool append_group(std::string& json, MessageReader message) {
  if (!message.skip("group ")) return false;
  const auto name = message.quoted_text();
  if (!name || !message.skip(" epoch ")) return false;
  append_text(json, "group", *name);
  append_number(json, "epoch", message.number());
  if (message.skip(" round ")) append_number(json, "round", message.number());
  return true;
}

/// "session 3 of PROCESS ...", also "... begun from PEER".
bool append_session(std::string& json, MessageReader message) {
  if (!message.skip("session ")) return false;
  const std::string_view number = message.number();
  if (number.empty() || !message.skip(" of ")) return false;
  append_number(json, "session", number);
  for (const std::string_view how : {" begun from ", " resumed from "}) {
    const std::size_t at = message.rest().rfind(how);
    if (at == std::string_view::npos) continue;
    const std::string_view peer = message.rest().substr(at + how.size());
    if (peer.find(' ') == std::string_view::npos) append_text(json, "peer", peer);
  }
  return true;
}

/// "PEER: closed: ...", "PEER, session 3: ended: ..."
void append_peer(std::string& json, std::string_view message) {
  constexpr std::array<std::string_view, 6> words = {
      ": accepted", ": admitted", ": closed: ", ": ended: ", ": not admitted: ", ": refused: "};
  std::size_t end = std::string_view::npos;
  for (const std::string_view word : words) end = std::min(end, message.find(word));
  if (end == std::string_view::npos) return;
  std::string_view peer = message.substr(0, end);
  std::string_view session;
  constexpr std::string_view before_session = ", session ";
  if (const std::size_t at = peer.find(before_session); at != std::string_view::npos) {
    session = peer.substr(at + before_session.size());
    peer = peer.substr(0, at);
  }
  if (peer.find(' ') != std::string_view::npos) return;  // some other line
  append_text(json, "peer", peer);
  append_number(json, "session", session);
}

std::string json_line(std::string_view time, muster::LogLevel level, std::string_view message) {
  std::string json = "{\"time\":";
  append_string(json, time);
  append_text(json, "level", word_for(level));
  append_text(json, "message", message);
  if (!append_group(json, MessageReader(message)) &&
      !append_session(json, MessageReader(message))) {
    append_peer(json, message);
  }
  return json += "}\n";
}

}  // namespace

std::string log_line(LogFormat format, std::string_view time, muster::LogLevel level,
                     std::string_view message) {
  const std::string printable = muster::printable(message);
  if (format == LogFormat::json) return json_line(time, level, printable);
  std::string text(time);
  const std::string_view word = word_for(level);
  text.append(" ").append(word).append(level_width - word.size(), ' ').append(" ");
  return text.append(printable) += '\n';
}

}  // namespace musterd
