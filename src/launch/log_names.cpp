#include "launch/log_names.h"

#include <algorithm>
#include <array>
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
    const std::string_view key = text.substr(1, end - 1);
    if (std::find(keys.begin(), keys.end(), key) == keys.end())
      return wrong_format("there is no key \"{" + printable(key.substr(0, 64)) + "}\"");
    if (!plain.text.empty()) format.pieces_.push_back(std::exchange(plain, {}));
    format.pieces_.push_back({std::string(key), true});
    text.remove_prefix(end + 1);
  }
  if (!plain.text.empty()) format.pieces_.push_back(std::move(plain));
  if (format.pieces_.empty()) return wrong_format("the name is empty");
  return format;
}

std::string LogFormat::name_of(const LogPlace& place) const {
  std::string name;
  for (const Piece& piece : pieces_)
    name += piece.is_key ? value_of(piece.text, place) : piece.text;
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
