#include "server/http/front/request.h"

#include <algorithm>

#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>

namespace muster::server::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace field_names = boost::beast::http;

using Parser = field_names::request_parser<field_names::empty_body>;
using Fields = field_names::fields;
using Field = field_names::field;

/// As a request has one or none of.
enum class Count { none, one, more };

Count count_of(const Fields& fields, Field name) {
  const auto count = fields.count(name);
  return count == 0 ? Count::none : count == 1 ? Count::one : Count::more;
}

std::string text_of(const Fields& fields, Field name) {
  const auto value = fields[name];
  return std::string(value.data(), value.size());
}

constexpr const char* versions = "HTTP/1.0 and HTTP/1.1 are spoken here.";

Refused refused_for(const beast::error_code& error) {
  if (error == field_names::error::bad_version) return {505, versions};
  return {400, "This is no head of a request: " + error.message() + "."};
}

/// returns  nothing: it cannot be said, or it is more than anything may have
std::optional<std::size_t> body_bytes_of(const Fields& fields) {
  if (count_of(fields, Field::transfer_encoding) != Count::none) return {};
  const Count count = count_of(fields, Field::content_length);
  if (count == Count::none) return 0;
  const std::string text = text_of(fields, Field::content_length);
  const auto is_digit = [](char letter) { return letter >= '0' && letter <= '9'; };
  if (count == Count::more || text.empty() || text.size() > 6 ||
      !std::all_of(text.begin(), text.end(), is_digit))
    return {};
  return std::stoul(text);
}

}  // namespace

std::optional<std::size_t> end_of_head(std::string_view bytes, std::size_t looked_at) {
  // Lines that end without a carriage return are refused, but not waited behind.
  for (std::size_t at = std::max<std::size_t>(looked_at, 2) - 2;
       (at = bytes.find('\n', at)) != bytes.npos; ++at) {
    if (bytes.substr(at + 1, 1) == "\n") return at + 2;
    if (bytes.substr(at + 1, 2) == "\r\n") return at + 3;
  }
  return {};
}

bool may_be_request(std::string_view bytes) {
  if (bytes.empty()) return true;
  // The longest method that is registered has 17 letters.
  const auto word = bytes.substr(0, std::min<std::size_t>(bytes.find(' '), 20));
  return word.size() < 20 && !word.empty() &&
         std::all_of(word.begin(), word.end(),
                     [](char letter) { return (letter >= 'A' && letter <= 'Z') || letter == '-'; });
}

std::variant<Request, Refused> read_head(std::string_view head, std::size_t target_bytes_max) {
  // Proxies differ in what they make of such lines (RFC 9112, 5.2).
  if (head.find("\n ") != head.npos || head.find("\n\t") != head.npos)
    return Refused{400, "A line of the head is folded: it begins with a blank."};
  Parser parser;
  parser.header_limit(static_cast<std::uint32_t>(head.size()) + 1);
  parser.skip(true);  // a body is refused, not read
  beast::error_code error;
  const std::size_t used = parser.put(asio::buffer(head.data(), head.size()), error);
  if (error && error != field_names::error::need_more) return refused_for(error);
  if (!parser.is_header_done() || used != head.size())
    return Refused{400, "A line of the head is not whole."};
  const auto& message = parser.get();
  const Fields& fields = message;
  Request request;
  request.is_get = message.method() == field_names::verb::get;
  request.is_head = message.method() == field_names::verb::head;
  const auto target = message.target();
  if (target.size() > target_bytes_max)
    return Refused{414, "A target has at most " + std::to_string(target_bytes_max) + " bytes."};
  request.target.assign(target.data(), target.size());
  if (message.version() != 10 && message.version() != 11) return Refused{505, versions};
  request.is_1_1 = message.version() == 11;
  request.keeps_alive = message.keep_alive();
  request.is_post = message.method() == field_names::verb::post;
  request.body_bytes = body_bytes_of(fields);
  request.has_body = request.body_bytes != std::optional<std::size_t>(0);
  const Count hosts = count_of(fields, Field::host);
  if (hosts == Count::more || (hosts == Count::none && request.is_1_1))
    return Refused{400, "A request has one line \"Host: NAME\"."};
  if (hosts == Count::one) request.host = text_of(fields, Field::host);
  if (count_of(fields, Field::authorization) == Count::more)
    return Refused{400, "A request has one line of Authorization at most."};
  request.authorization = text_of(fields, Field::authorization);
  request.accept = text_of(fields, Field::accept);
  request.cookies = text_of(fields, Field::cookie);
  request.origin = text_of(fields, Field::origin);
  request.content_type = text_of(fields, Field::content_type);
  const auto site = fields["Sec-Fetch-Site"];
  request.fetch_site.assign(site.data(), site.size());
  return request;
}

}  // namespace muster::server::http
