// A front of HTTP by itself, with handlers and limits that musterd does not have.
//
//     http_host [LIMIT=NUMBER...]
//
// Prints its URL, and ends with its standard input. Each line of the standard input is a phase and
// its reason: "serving", "ending it is late", or "turn", which counts a turn of its server.
//
// /echo tells path, query, accepted type and right; /large has as many bytes as its query says;
// /throws throws; /ticks and /quiet go on; /later is there when it was asked for often enough;
// /below/ has all below it; /admin needs the right to operate.

#include <cstdint>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>

#include "server/http/front.h"

namespace {

using muster::server::http::Answer;
using muster::server::http::Front;
using muster::server::http::FrontOptions;
using muster::server::http::later;
using muster::server::http::Limits;
using muster::server::http::Phase;
using muster::server::http::Question;
using muster::server::http::Right;

Answer echo(const Question& question) {
  return {200, "text/plain",
          std::string(question.path) + "|" + std::string(question.query) + "|" +
              std::string(question.accept) + "|" +
              std::to_string(static_cast<int>(question.right))};
}

Answer large(const Question& question) {
  return {200, "application/octet-stream",
          std::string(std::stoull(std::string(question.query)), 'x')};
}

/// "N": pieces of so many bytes, without an end; "N&end": four of them.
Answer ticks(const Question& question) {
  const std::string query(question.query);
  Answer answer{200, "text/event-stream", std::string(std::stoull(query), 'x')};
  const bool has_end = query.ends_with("&end");
  answer.goes_on_at = has_end && question.position == 3 ? 0 : question.position + 1;
  if (answer.goes_on_at == 0) answer.body.clear();
  if (has_end && question.position == 0) answer.body += answer.body;
  return answer;
}

Answer quiet(const Question&) {
  Answer answer{200, "text/event-stream", ""};
  answer.goes_on_at = 1;
  return answer;
}

/// When it was asked for so often.
Answer late(const Question& question) {
  static std::uint64_t asked = 0;
  if (++asked < std::stoull(std::string(question.query))) return {later, "", ""};
  return {200, "text/plain", "at last"};
}

FrontOptions options_of(int argc, char** argv) {
  FrontOptions options;
  options.address = "127.0.0.1:0";
  const std::map<std::string, std::uint32_t Limits::*> limits = {
      {"connections_max", &Limits::connections_max},
      {"connections_per_address_max", &Limits::connections_per_address_max},
      {"head_ms", &Limits::head_ms},
      {"idle_ms", &Limits::idle_ms},
      {"write_ms", &Limits::write_ms},
      {"stall_ms", &Limits::stall_ms},
      {"answer_ms", &Limits::answer_ms},
      {"streams_max", &Limits::streams_max},
      {"stream_ms", &Limits::stream_ms},
      {"comment_ms", &Limits::comment_ms}};
  for (int at = 1; at < argc; ++at) {
    const std::string argument = argv[at];
    const auto equals = argument.find('=');
    options.limits.*limits.at(argument.substr(0, equals)) =
        static_cast<std::uint32_t>(std::stoul(argument.substr(equals + 1)));
  }
  options.routes = {{"/echo", Right::read, echo},
                    {"/large", Right::read, large},
                    {"/throws", Right::read,
                     [](const Question&) -> Answer { throw std::runtime_error("a handler"); }},
                    {"/below/", Right::read, echo},
                    {"/below/more/", Right::read,
                     [](const Question&) {
                       return Answer{200, "text/html", "more"};
                     }},
                    {"/later", Right::read, late},
                    {"/ticks", Right::read, ticks, true},
                    {"/quiet", Right::read, quiet, true},
                    {"/admin", Right::admin, echo}};
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  auto started = Front::start(options_of(argc, argv));
  if (!started) {
    std::cout << started.error().detail << std::endl;
    return 1;
  }
  Front& front = **started;
  std::cout << front.url() << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    if (line == "turn") {
      front.turned();
    } else if (line == "serving") {
      front.set_phase(Phase::serving, {});
    } else {
      front.set_phase(Phase::ending, line.substr(line.find(' ') + 1));
    }
  }
  return 0;
}
