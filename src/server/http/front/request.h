#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace muster::server::http {

/// What counts of a request's head.
struct Request {
  bool is_get = false;
  bool is_head = false;
  bool is_post = false;
  std::string target;
  bool is_1_1 = false;  ///< else HTTP/1.0
  bool keeps_alive = false;
  bool has_body = false;
  /// That it says its body has; nothing: there is a body of another kind.
  std::optional<std::size_t> body_bytes;
  std::optional<std::string> host;
  std::string authorization;
  std::string accept;
  std::string cookies;
  std::string origin;
  std::string fetch_site;
  std::string content_type;
  std::string body;  ///< of a form, which was waited for
};

/// A request that is none: what to answer before the connection ends.
struct Refused {
  int status;
  std::string why;
};

/// Where the head ends, with its empty line; nothing: it is not there yet.
///
/// looked_at  so many bytes were looked at before
std::optional<std::size_t> end_of_head(std::string_view bytes, std::size_t looked_at);

/// Whether a request could begin so. What speaks another protocol is known by its first bytes.
bool may_be_request(std::string_view bytes);

/// Reads a head, up to and with its empty line.
std::variant<Request, Refused> read_head(std::string_view head, std::size_t target_bytes_max);

}  // namespace muster::server::http
