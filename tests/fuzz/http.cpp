#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "fuzz.h"
#include "server/http/front/conversation.h"

// What comes at a connection of HTTP, all at once and in pieces: the answers are the same, and each
// is one that a client understands, with the fields that protect browsers.

using namespace muster;
using namespace muster::server::http;

namespace {

constexpr std::time_t date = 1'767'225'600;
constexpr std::size_t read_bytes_max = 4096;  // as a connection reads
constexpr const char* token = "muster-http-known";

Limits small_limits() {
  Limits limits;
  limits.head_bytes_max = 256;
  limits.target_bytes_max = 64;
  return limits;
}

Answer echo(const Question& question) {
  fuzz::require(question.path.starts_with('/'), "a path begins at the root");
  for (const char byte : question.path)
    fuzz::require(static_cast<unsigned char>(byte) >= 0x20 && byte != 0x7f,
                  "a path has no control characters");
  return {200, "text/plain", std::string(question.path) + "?" + std::string(question.query)};
}

/// Goes on for some pieces; some of it is not there yet.
Answer stream(const Question& question) {
  Answer answer{200, "text/event-stream", std::string(question.query)};
  if (question.position == 2) answer.status = later;
  answer.goes_on_at = question.position < 5 ? question.position + 1 : 0;
  return answer;
}

Answer late(const Question&) { return {later, "", ""}; }

Site make_site(bool asks_for_token) {
  Site site({{"/", Right::read, echo},
             {"/admin", Right::admin, echo},
             {"/stream", Right::read, stream, true},
             {"/late", Right::read, late}},
            {"muster.example"}, small_limits(), [](LogLevel, std::string_view line) {
              fuzz::require(line.find("muster-http-") == line.npos, "no token is logged");
            });
  if (!asks_for_token) return site;
  site.ask_for_token(Site::Transport::plain, [](void* bytes, std::size_t size) {
    std::memset(bytes, 7, size);
    return true;
  });
  TokenHolder holder{"one", Right::read, {}};
  make_digest(token, holder.digest.data());
  site.set_tokens({holder});
  return site;
}

struct Said {
  std::string bytes;
  std::size_t answers_count = 0;
  std::size_t pieces_count = 0;  ///< of an answer that goes on
  bool has_ended = false;
};
/// An answer that goes on has no end; nothing else is looked at behind so much of it.
constexpr std::size_t pieces_max = 100;

Said say(std::string_view bytes, std::size_t piece_bytes, bool asks_for_token) {
  Site site = make_site(asks_for_token);
  Conversation conversation(site, {"192.0.2.1", "192.0.2.1", "192.0.2.2"});
  Conversation::Moment moment{base::Instant(std::chrono::seconds(100)), date};
  Said said;
  while (!bytes.empty() && !said.has_ended) {
    const std::string piece(bytes.substr(0, piece_bytes));
    bytes.remove_prefix(piece.size());
    conversation.take(piece);
    while (auto output = conversation.go_on(moment)) {
      fuzz::require(!said.has_ended, "nothing is said behind the last answer");
      said.bytes += output->bytes;
      said.has_ended = output->is_last;
      if (!output->bytes.empty()) ++said.answers_count;
      if (output->goes_on_in) moment.now += *output->goes_on_in;
      if (conversation.is_in_stream() && ++said.pieces_count == pieces_max) return said;
      fuzz::require(!output->bytes.empty() || output->is_last || output->goes_on_in.has_value(),
                    "something is said, or will be");
    }
  }
  return said;
}

/// Reads the answers as a client does that has asked by GET. Those to HEAD have no body, so that
/// only the first one can be looked at where there are such.
void check(const Said& said) {
  namespace http = boost::beast::http;
  if (said.answers_count == 0) return;
  http::response_parser<http::string_body> parser;
  boost::beast::error_code error;
  parser.eager(false);
  parser.put(boost::asio::buffer(said.bytes.data(), said.bytes.size()), error);
  fuzz::require(!error && parser.is_header_done(), "an answer is understood");
  const auto& answer = parser.get();
  for (const char* field : {"Content-Security-Policy", "X-Content-Type-Options", "Referrer-Policy",
                            "Cache-Control", "Date", "Content-Type"})
    fuzz::require(answer.count(field) == 1, "an answer has its fields once");
  const bool has_length = answer.count("Content-Length") == 1;
  const bool goes_on = answer["Content-Type"] == "text/event-stream";
  fuzz::require(has_length || goes_on, "an answer says how long it is, or goes on");
  fuzz::require(answer.count("Server") == 0, "nothing is told of the version");
  fuzz::require(answer.result_int() >= 200 && answer.result_int() < 600, "a status is one");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const std::uint8_t choice = input.byte();
  const bool asks_for_token = (choice & 1) != 0;
  const std::size_t piece_bytes = 1 + (choice >> 1) % 40;
  const Said at_once = say(input.rest(), read_bytes_max, asks_for_token);
  const Said in_pieces = say(input.rest(), piece_bytes, asks_for_token);
  fuzz::require(at_once.bytes == in_pieces.bytes, "the answers are the same");
  fuzz::require(at_once.has_ended == in_pieces.has_ended, "the end is the same");
  check(at_once);
  return 0;
}
