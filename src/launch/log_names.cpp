#include "launch/log_names.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/failure.h"
#include "muster/log.h"

namespace muster::launch {

namespace {

constexpr std::array<std::string_view, 7> keys{
    "rank", "local_rank", "world_size", "local_world_size", "node_rank", "attempt", "role"};

std::string value_of(std::string_view key, const LogPlace& place) {
  const std::array values{place.rank,       place.local_rank,
                          place.world_size, place.local_world_size,
                          place.node_rank,  place.attempt};
  const auto found = std::find(keys.begin(), keys.end(), key);
  const auto index = static_cast<std::size_t>(found - keys.begin());
  return index < values.size() ? std::to_string(values[index]) : place.role;
}

/// Reads the width behind a colon: "03d", "5", "2d".
///
/// returns  whether it is one
bool read_width(std::string_view text, std::size_t& width, char& fill) {
  constexpr std::size_t width_max = 64;
  if (!text.empty() && text.back() == 'd') text.remove_suffix(1);
  if (text.substr(0, 1) == "0") fill = '0';
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), width);
  return failure == std::errc() && end == text.data() + text.size() && width <= width_max;
}

Error wrong_format(const std::string& why) {
  std::string valid;
  for (const std::string_view key : keys)
    valid += (valid.empty() ? "{" : ", {") + std::string(key) + "}";
  return base::failure(ErrorCode::invalid_argument,
                       why + "; valid are " + valid + ", and {{ and }} for braces");
}

}  // namespace

Result<LogFormat> LogFormat::parse(std::string_view text) {
  LogFormat format;
  Piece plain;
  while (!text.empty()) {
    const char letter = text.front();
    const bool is_brace = letter == '{' || letter == '}';
    if (!is_brace || text.substr(1, 1) == text.substr(0, 1)) {
      plain.text += letter;
      text.remove_prefix(is_brace ? 2 : 1);
      continue;
    }
    if (letter == '}') return wrong_format("a \"}\" closes nothing");
    const std::size_t end = text.find('}');
    if (end == text.npos)
      return wrong_format("\"" + printable(text.substr(0, 64)) + "\" is not closed");
    const std::string_view inner = text.substr(1, end - 1);
    const std::string_view key = inner.substr(0, inner.find(':'));
    Piece piece{std::string(key), true};
    const bool has_width = key.size() < inner.size();
    if (std::find(keys.begin(), keys.end(), key) == keys.end() ||
        (has_width &&
         (key == "role" || !read_width(inner.substr(key.size() + 1), piece.width, piece.fill))))
      return wrong_format("there is no key \"{" + printable(inner.substr(0, 64)) + "}\"");
    if (!plain.text.empty()) format.pieces_.push_back(std::exchange(plain, {}));
    format.pieces_.push_back(std::move(piece));
    text.remove_prefix(end + 1);
  }
  if (!plain.text.empty()) format.pieces_.push_back(std::move(plain));
  if (format.pieces_.empty()) return wrong_format("the name is empty");
  return format;
}

std::string LogFormat::name_of(const LogPlace& place) const {
  std::string name;
  for (const Piece& piece : pieces_) {
    const std::string text = piece.is_key ? value_of(piece.text, place) : piece.text;
    if (text.size() < piece.width) name.append(piece.width - text.size(), piece.fill);
    name += text;
  }
  return name;
}

LogFolder::LogFolder(std::string_view log_dir, std::string_view job_id, std::string_view random) {
  std::string name(job_id);
  std::replace(name.begin(), name.end(), '/', '_');
  path_ = std::string(log_dir) + "/" + name + "_" + std::string(random);
}

std::string LogFolder::folder_of(int attempt, int local_rank) const {
  return path_ + "/attempt_" + std::to_string(attempt) + "/" + std::to_string(local_rank);
}

std::string LogFolder::stdout_of(int attempt, int local_rank) const {
  return folder_of(attempt, local_rank) + "/stdout.log";
}

std::string LogFolder::stderr_of(int attempt, int local_rank) const {
  return folder_of(attempt, local_rank) + "/stderr.log";
}

std::string LogFolder::error_of(int attempt, int local_rank) const {
  return folder_of(attempt, local_rank) + "/error.json";
}

std::string LogFolder::unkept_error_of(int attempt, int local_rank) const {
  return path_ + "/attempt_" + std::to_string(attempt) + "_" + std::to_string(local_rank) + ".json";
}

}  // namespace muster::launch
