#include "server/http/front/conversation.h"

#include <chrono>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>

using namespace muster;
using namespace muster::server::http;

namespace {

/// A conversation with a site, and what it logs.
struct Talk {
  explicit Talk(std::vector<Route> routes = {})
      : site(std::move(routes), {}, Limits{},
             [this](LogLevel, std::string_view line) { lines.emplace_back(line); }) {
    site.see_turns(1, now);
  }

  std::string say(const std::string& bytes) {
    Conversation conversation(site, {"192.0.2.1", "192.0.2.1", "192.0.2.2"});
    conversation.take(bytes);
    std::string said;
    while (const auto output = conversation.go_on({now, 0})) said += output->bytes;
    return said;
  }
  int status(const std::string& head) {
    const std::string said = say(head + "\r\n\r\n");
    return said.empty() ? 0 : std::stoi(said.substr(9, 3));
  }
  int status_of(const std::string& path, const std::string& field = {}) {
    return status("GET " + path + " HTTP/1.1\r\nHost: localhost" + field);
  }

  base::Instant now{std::chrono::seconds(100)};
  std::vector<std::string> lines;
  Site site;
};

TokenHolder holder_of(const std::string& token, Right right) {
  TokenHolder holder{"somebody", right, {}};
  REQUIRE(make_digest(token, holder.digest.data()));
  return holder;
}

/// In place of random numbers.
bool seven(void* bytes, std::size_t size) {
  std::memset(bytes, 7, size);
  return true;
}

/// A form with a token.
std::string login(const std::string& token, const std::string& more = {}) {
  const std::string body = "token=" + token;
  return "POST /login HTTP/1.1\r\nHost: localhost\r\n" + more +
         "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

constexpr const char* session = "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc";

std::string bearer(const std::string& token) { return "\r\nAuthorization: Bearer " + token; }

}  // namespace

TEST_CASE("an answer has date, type, length and the fields that protect browsers") {
  Talk talk;
  CHECK(talk.say("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n") ==
        "HTTP/1.1 200 OK\r\n"
        "Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n"
        "Content-Type: text/plain; charset=utf-8\r\n"
        "Content-Length: 3\r\n"
        "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "
        "img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'\r\n"
        "Cache-Control: no-store\r\n"
        "Cross-Origin-Resource-Policy: same-origin\r\n"
        "Referrer-Policy: same-origin\r\n"
        "X-Content-Type-Options: nosniff\r\n"
        "Connection: keep-alive\r\n\r\nok\n");
}

TEST_CASE("a folded line is refused") {
  Talk talk;
  CHECK(talk.status_of("/healthz", "\r\nX-Note: one\r\nX-More: two") != 400);
  CHECK(talk.status_of("/healthz", "\r\nX-Note: one\r\n two") == 400);
  CHECK(talk.status_of("/healthz", "\r\nX-Note: one\r\n\ttwo") == 400);
}

TEST_CASE("a server is well as long as its count of turns changes in time") {
  Talk talk;
  talk.now += std::chrono::milliseconds(9'999);
  talk.site.see_turns(1, talk.now);
  CHECK(talk.status_of("/healthz") == 200);
  talk.now += std::chrono::milliseconds(1);
  CHECK(talk.status_of("/healthz") == 503);
  talk.site.see_turns(2, talk.now);
  CHECK(talk.status_of("/healthz") == 200);
}

TEST_CASE("a server is ready between its start and its end") {
  Talk talk;
  CHECK(talk.status_of("/readyz") == 503);
  talk.site.set_phase(Phase::serving, {});
  CHECK(talk.status_of("/readyz") == 200);
  talk.site.set_phase(Phase::ending, "it ends");
  CHECK(talk.status_of("/readyz") == 503);
  CHECK(talk.status_of("/healthz") == 200);
}

TEST_CASE("the right of a token decides what it may ask") {
  const auto answer = [](const Question&) { return Answer{}; };
  Talk talk({{"/look", Right::read, answer}, {"/do", Right::admin, answer}});
  CHECK(talk.status_of("/look") == 200);
  CHECK(talk.status_of("/do") == 403);  // nobody is asked, so nobody operates
  talk.site.ask_for_token(Site::Transport::plain, seven);
  talk.site.set_tokens({holder_of("a", Right::read), holder_of("b", Right::admin)});
  CHECK(talk.status_of("/look") == 401);
  CHECK(talk.status_of("/look", bearer("a")) == 200);
  CHECK(talk.status_of("/do", bearer("a")) == 403);
  CHECK(talk.status_of("/do", bearer("b")) == 200);
  CHECK(talk.status_of("/healthz") == 200);
}

TEST_CASE(
    "who guesses is told of up to ten times a minute, and a right token is taken in any case") {
  Talk talk;
  talk.site.ask_for_token(Site::Transport::plain, seven);
  talk.site.set_tokens({holder_of("a", Right::read)});
  for (int time = 0; time < 10; ++time) CHECK(talk.status_of("/x", bearer("guess")) == 401);
  CHECK(talk.status_of("/x", bearer("guess")) == 429);
  CHECK(talk.status_of("/x", bearer("a")) == 404);
  CHECK(talk.lines.size() == 10);
  for (const std::string& line : talk.lines) CHECK(line.find("guess") == line.npos);
  talk.now += std::chrono::minutes(1);
  CHECK(talk.status_of("/x", bearer("guess")) == 401);
}

TEST_CASE("a browser that has shown a token in a form is known by its cookie, for 12 hours") {
  Talk talk({{"/do", Right::admin, [](const Question&) { return Answer{}; }}});
  talk.site.ask_for_token(Site::Transport::plain, seven);
  talk.site.set_tokens({holder_of("a b", Right::admin)});
  const std::string cookie = "\r\nCookie: x=y; muster=" + std::string(session);
  CHECK(talk.status_of("/do", cookie) == 401);
  CHECK(talk.say(login("a%20b")).starts_with("HTTP/1.1 303 "));
  CHECK(talk.say(login("a+b"))
            .find("Set-Cookie: muster=" + std::string(session) +
                  "; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict\r\n") != std::string::npos);
  CHECK(talk.status_of("/do", cookie) == 200);
  CHECK(talk.status_of("/do", cookie + "a") == 401);
  CHECK(talk.status_of("/do", cookie + bearer("c")) == 401);  // what is said counts more
  talk.site.set_tokens({holder_of("another", Right::admin)});
  CHECK(talk.status_of("/do", cookie) == 401);
  talk.site.set_tokens({holder_of("a b", Right::read)});
  CHECK(talk.status_of("/do", cookie) == 403);
  talk.now += std::chrono::hours(12) - std::chrono::seconds(1);
  CHECK(talk.status_of("/do", cookie) == 403);
  talk.now += std::chrono::seconds(1);
  CHECK(talk.status_of("/do", cookie) == 401);
}

TEST_CASE("a session ends when the browser logs out") {
  Talk talk;
  talk.site.ask_for_token(Site::Transport::plain, seven);
  talk.site.set_tokens({holder_of("a", Right::read)});
  const std::string cookie = "\r\nCookie: muster=" + std::string(session);
  talk.say(login("a"));
  CHECK(talk.status_of("/x", cookie) == 404);
  CHECK(talk.status("POST /logout HTTP/1.1\r\nHost: localhost" + cookie) == 303);
  CHECK(talk.status_of("/x", cookie) == 401);
}

TEST_CASE("a form counts only from a page of the server, with a token that is known") {
  Talk talk;
  CHECK(talk.say(login("a")).starts_with("HTTP/1.1 405 "));  // nobody is asked for a token
  talk.site.ask_for_token(Site::Transport::plain, seven);
  talk.site.set_tokens({holder_of("a", Right::read)});
  CHECK(talk.say(login("a", "Origin: http://localhost\r\n")).starts_with("HTTP/1.1 303 "));
  CHECK(talk.say(login("a", "Sec-Fetch-Site: same-origin\r\n")).starts_with("HTTP/1.1 303 "));
  for (const char* field :
       {"Origin: http://localhost.example\r\n", "Origin: http://localhost:1\r\n",
        "Origin: null\r\n", "Sec-Fetch-Site: cross-site\r\n", "Sec-Fetch-Site: same-site\r\n"})
    CHECK(talk.say(login("a", field)).starts_with("HTTP/1.1 403 "));
  CHECK(talk.say(login("b", "Accept: text/html\r\n")).find("<form ") != std::string::npos);
  CHECK(talk.say(login(std::string(1100, 'a'))).starts_with("HTTP/1.1 405 "));
  for (int time = 0; time < 10; ++time) talk.say(login("guess"));
  CHECK(talk.say(login("guess")).starts_with("HTTP/1.1 429 "));
  CHECK(talk.say(login("a")).starts_with("HTTP/1.1 303 "));
}

TEST_CASE("by TLS the cookie is one that no other host and no plain page can set or get") {
  Talk talk;
  talk.site.ask_for_token(Site::Transport::tls, seven);
  talk.site.set_tokens({holder_of("a", Right::read)});
  CHECK(talk.say(login("a"))
            .find("Set-Cookie: __Host-muster=" + std::string(session) +
                  "; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict; Secure") !=
        std::string::npos);
  CHECK(talk.status_of("/x", "\r\nCookie: muster=" + std::string(session)) == 401);
  CHECK(talk.status_of("/x", "\r\nCookie: __Host-muster=" + std::string(session)) == 404);
}

TEST_CASE("sessions are bounded, and the oldest goes first") {
  int count = 0;
  Sessions sessions([&count](void* bytes, std::size_t size) {
    std::memset(bytes, 0, size);
    std::memcpy(bytes, &++count, sizeof count);
    return true;
  });
  const base::Instant now{std::chrono::seconds(1)};
  const auto first = sessions.begin({}, now);
  REQUIRE(first);
  for (int more = 1; more < 256; ++more) sessions.begin({}, now + std::chrono::seconds(more));
  CHECK(sessions.find(*first, now) != nullptr);
  sessions.begin({}, now);
  CHECK(sessions.find(*first, now) == nullptr);
}

TEST_CASE("what a handler throws is an answer, and no line of a head is made of what it gives") {
  Talk talk(
      {{"/throws", Right::read, [](const Question&) -> Answer { throw std::runtime_error("it"); }},
       {"/splits", Right::read, [](const Question&) {
          return Answer{200, "text/plain\r\nSet-Cookie: a=b", ""};
        }}});
  CHECK(talk.status_of("/throws") == 500);
  const std::string said = talk.say("GET /splits HTTP/1.0\r\n\r\n");
  CHECK(said.find("Set-Cookie") == said.npos);
}

TEST_CASE("nothing is answered behind a body or behind what is no request") {
  Talk talk;
  const std::string next = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
  for (const std::string& first :
       {std::string("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\n"),
        std::string("GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: x\r\n\r\n"),
        std::string("GET / HTTP/1.1\r\n\r\n"), std::string("nonsense\r\n\r\n")}) {
    const std::string said = talk.say(first + next);
    CHECK(said.find("200 OK") == said.npos);
    CHECK(said.find("Connection: close") != said.npos);
  }
}

TEST_CASE("only one who has begun a request is told that it took too long") {
  Talk talk;
  Conversation conversation(talk.site, {});
  CHECK(!conversation.time_out({talk.now, 0}));
  conversation.take("\r\n");
  CHECK(!conversation.is_in_request());
  conversation.take("G");
  CHECK(!conversation.go_on({talk.now, 0}));
  const auto output = conversation.time_out({talk.now, 0});
  REQUIRE(output);
  CHECK(output->is_last);
  CHECK(output->bytes.starts_with("HTTP/1.1 408 "));
}

namespace {

/// A stream of numbers, and a conversation that reads it.
struct Streaming {
  explicit Streaming(const std::string& version = "1.1", const std::string& more = {})
      : head("GET /stream HTTP/" + version + "\r\nHost: localhost" + more + "\r\n\r\n") {}

  static Answer numbers(const Question& question) {
    if (question.position == 9) return {};
    Answer answer{200, "text/event-stream", ""};
    if (question.position % 2 == 0) answer.body = "n" + std::to_string(question.position);
    answer.goes_on_at = question.position + 1;
    return answer;
  }

  Conversation begin() { return Conversation(talk.site, {"192.0.2.1", "192.0.2.1", "192.0.2.2"}); }
  Conversation::Output next(Conversation& conversation) {
    auto output = conversation.go_on({talk.now, 0});
    REQUIRE(output);
    return std::move(*output);
  }

  Talk talk{{{"/stream", Right::read, numbers, true},
             {"/again", Right::read, [this](const Question&) {
                return ++asked < 3 ? Answer{later, "", ""} : Answer{200, "text/plain", "there"};
              }}}};
  std::string head;
  int asked = 0;
};

}  // namespace

TEST_CASE("an answer that goes on comes in pieces, and its place is given back") {
  Streaming streaming;
  {
    Conversation conversation = streaming.begin();
    conversation.take(streaming.head);
    const auto first = streaming.next(conversation);
    CHECK(first.bytes.find("Transfer-Encoding: chunked\r\n") != std::string::npos);
    CHECK(first.bytes.find("Content-Length") == std::string::npos);
    CHECK(first.bytes.ends_with("Connection: close\r\n\r\n2\r\nn0\r\n"));
    CHECK(first.goes_on_in == std::chrono::milliseconds(500));
    CHECK(conversation.is_in_stream());
    CHECK(streaming.talk.site.stream_bytes() == 7);
    CHECK(streaming.next(conversation).bytes.empty());
    CHECK(streaming.talk.site.stream_bytes() == 0);
    CHECK(streaming.next(conversation).bytes == "2\r\nn2\r\n");
  }
  CHECK(streaming.talk.site.stream_bytes() == 0);
  std::vector<Conversation> all;
  for (std::uint32_t count = 0; count < Limits{}.streams_per_address_max; ++count) {
    all.push_back(streaming.begin());
    all.back().take(streaming.head);
    CHECK(streaming.next(all.back()).bytes.starts_with("HTTP/1.1 200 "));
  }
  Conversation refused = streaming.begin();
  refused.take(streaming.head);
  const auto output = streaming.next(refused);
  CHECK(output.bytes.starts_with("HTTP/1.1 503 "));
  CHECK(output.bytes.find("Retry-After: ") != std::string::npos);
  CHECK(output.is_last);
  all.pop_back();
  Conversation next = streaming.begin();
  next.take(streaming.head);
  CHECK(streaming.next(next).bytes.starts_with("HTTP/1.1 200 "));
}

TEST_CASE("an answer that goes on ends with its handler, and with it the connection") {
  for (const std::string version : {"1.1", "1.0"}) {
    Streaming streaming(version);
    Conversation conversation = streaming.begin();
    conversation.take(streaming.head + "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    std::string said;
    Conversation::Output output;
    do {
      output = streaming.next(conversation);
      said += output.bytes;
    } while (!output.is_last);
    CHECK(said.find("HTTP/1.1 200", 1) == std::string::npos);
    CHECK(said.ends_with(version == "1.1" ? "2\r\nn8\r\n0\r\n\r\n" : "n0n2n4n6n8"));
    CHECK_FALSE(conversation.go_on({streaming.talk.now, 0}));
  }
}

TEST_CASE("a stream that is quiet says a word now and then") {
  Streaming streaming;
  Conversation conversation = streaming.begin();
  conversation.take(streaming.head);
  streaming.next(conversation);
  streaming.talk.now += std::chrono::seconds(15);
  CHECK(streaming.next(conversation).bytes == "3\r\n:\n\n\r\n");
}

TEST_CASE("a stream ends with the right of who has it") {
  Streaming streaming("1.1", bearer("a"));
  streaming.talk.site.ask_for_token(Site::Transport::plain, seven);
  streaming.talk.site.set_tokens({holder_of("a", Right::read)});
  Conversation conversation = streaming.begin();
  conversation.take(streaming.head);
  CHECK_FALSE(streaming.next(conversation).is_last);
  streaming.talk.site.set_tokens({});
  CHECK(streaming.next(conversation).is_last);
}

TEST_CASE("nothing more is made for streams while too much of them waits to be taken") {
  Streaming streaming;
  Conversation conversation = streaming.begin();
  conversation.take(streaming.head);
  streaming.next(conversation);
  streaming.next(conversation);
  streaming.talk.site.stream_bytes() += Limits{}.stream_bytes_max + 1;
  for (int time = 0; time < 3; ++time) CHECK(streaming.next(conversation).bytes.empty());
  streaming.talk.site.stream_bytes() -= Limits{}.stream_bytes_max + 1;
  CHECK(streaming.next(conversation).bytes == "2\r\nn2\r\n");
}

TEST_CASE("a question whose answer is not there yet is asked again, for some seconds") {
  Streaming streaming;
  Conversation conversation = streaming.begin();
  const std::string head = "GET /again HTTP/1.1\r\nHost: localhost\r\n\r\n";
  conversation.take(head);
  for (int time = 0; time < 2; ++time) {
    const auto output = streaming.next(conversation);
    CHECK(output.bytes.empty());
    CHECK(output.goes_on_in);
    CHECK_FALSE(conversation.is_in_stream());
  }
  CHECK(streaming.next(conversation).bytes.ends_with("\r\n\r\nthere"));
  CHECK_FALSE(conversation.go_on({streaming.talk.now, 0}));
  streaming.asked = -1000;
  conversation.take(head);
  streaming.next(conversation);
  streaming.talk.now += std::chrono::milliseconds(Limits{}.answer_ms);
  const auto output = streaming.next(conversation);
  CHECK(output.bytes.starts_with("HTTP/1.1 503 "));
  CHECK_FALSE(output.is_last);
}
