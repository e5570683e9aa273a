#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace muster::server::http {

/// What somebody may who asks by HTTP; each has what those before it have.
enum class Right : std::uint8_t { none, read, admin };

/// A request that the front has let through. Its texts are there as long as the handler runs.
struct Question {
  std::string_view path;    ///< its escapes are decoded
  std::string_view query;   ///< behind the "?", as it came
  std::string_view accept;  ///< which types are wanted, as it came; may be empty
  Right right = Right::none;
  /// Of an answer that goes on: as its last piece has said; 0: it begins.
  std::uint64_t position = 0;
};

/// The status of an answer that is not there yet: the question is asked again in a moment, for some
/// seconds at most.
inline constexpr int later = 0;

struct Answer {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
  /// Of a page that has scripts of its own, in place of that of all.
  std::string content_policy = {};
  /// Above 0: there is more to come. The question is asked again with it as its position twice in a
  /// second, as soon as this piece has been taken; a piece may be empty.
  std::uint64_t goes_on_at = 0;
};

/// Runs on the front's thread, which has none of the process's descriptors: it reads what others
/// have published in memory, waits for nothing, and opens and logs nothing. What it throws is
/// answered with 500.
using Handler = std::function<Answer(const Question&)>;

/// Who answers for a path. A prefix that ends in "/" is for all below it, another for itself; the
/// longest one counts.
struct Route {
  std::string prefix;
  Right needs = Right::read;
  Handler handler;
  bool goes_on = false;  ///< its answers may; there is a limit for those
};

}  // namespace muster::server::http
