#include "server/http/front/site.h"

#include <chrono>
#include <utility>

#include "server/http/front/visitors/form.h"
#include "server/http/front/visitors/login_page.h"

namespace muster::server::http {
namespace {

constexpr std::size_t form_bytes_max = 1024;
/// By this the page knows that there is a session to log out from.
constexpr std::string_view session_head = "Muster-Session: 1\r\n";

Reply short_reply(int status, std::string text) {
  return {{status, "text/plain; charset=utf-8", std::move(text) + "\n"}};
}

}  // namespace

std::string_view phrase_of(int status) {
  switch (status) {
    case 200: return "OK";
    case 303: return "See Other";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 406: return "Not Acceptable";
    case 408: return "Request Timeout";
    case 413: return "Content Too Large";
    case 414: return "URI Too Long";
    case 421: return "Misdirected Request";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 503: return "Service Unavailable";
    case 505: return "HTTP Version Not Supported";
    default: return "Other";
  }
}

Site::Site(std::vector<Route> routes, const std::vector<std::string>& names, const Limits& limits,
           Log log)
    : routes_(std::move(routes)),
      names_(names),
      limits_(limits),
      log_(std::move(log)),
      streams_(std::make_shared<Places>(limits.streams_max, limits.streams_per_address_max)) {}

void Site::ask_for_token(Transport transport, Sessions::Random random) {
  transport_ = transport;
  sessions_.emplace(std::move(random));
}

void Site::set_phase(Phase phase, std::string reason) {
  phase_ = phase;
  reason_ = std::move(reason);
}

void Site::see_turns(std::uint64_t turns, base::Instant now) {
  if (turns == turns_ && last_turn_ != base::Instant{}) return;
  turns_ = turns;
  last_turn_ = now;
}

Reply Site::refusal(int status, std::string_view why) {
  Reply reply = short_reply(status, std::string(why));
  if (status == 405) reply.more_head = "Allow: GET, HEAD\r\n";
  return reply;
}

Reply Site::reply(const Request& request, const Caller& caller, base::Instant now,
                  std::uint64_t position) {
  const bool is_form = takes_body(request);
  if (!request.is_get && !request.is_head && !is_form)
    return refusal(405, "Nothing is changed by HTTP: GET and HEAD are what is answered.");
  if (request.has_body && !is_form) return refusal(413, "A request has no body here.");
  const auto target = read_target(request.target);
  if (!target) {
    return refusal(400, "The target is no /PATH?QUERY, or an escape of its path (%20) is wrong.");
  }
  const auto& host = target->host ? target->host : request.host;
  if (host && !names_.is_ours(*host, caller.came_to)) {
    return refusal(421, "This server is not known by that name: see --http-host.");
  }
  if (is_form && caller.has_place) return reply_to_form(request, caller, now);
  if (target->path == "/healthz") return reply_of_health(now);
  if (target->path == "/readyz") return reply_of_readiness(now);
  if (!caller.has_place) return reply_to_crowd();
  Right right = Right::read;
  std::string_view more_head;
  if (sessions_) {
    const Guard::Judgement judgement = judge(request, caller, now);
    if (judgement.verdict != Guard::Verdict::known)
      return reply_of_stranger(judgement, caller, request);
    right = judgement.right;
    if (request.authorization.empty()) more_head = session_head;
  }
  Reply reply = reply_of_routes(*target, request, right, position);
  reply.more_head += more_head;
  return reply;
}

Reply Site::reply_to_crowd() const {
  Reply reply =
      refusal(503, "All places are taken: " + std::to_string(limits_.connections_max) +
                       " connections are served at a time, and " +
                       std::to_string(limits_.connections_per_address_max) + " of an address.");
  reply.more_head = "Retry-After: 10\r\n";
  return reply;
}

Reply Site::reply_of_health(base::Instant now) const {
  const bool is_well = now - last_turn_ < std::chrono::milliseconds(limits_.stall_ms);
  return is_well ? short_reply(200, "ok") : short_reply(503, "the server does not turn");
}

Reply Site::reply_of_readiness(base::Instant now) const {
  Reply health = reply_of_health(now);
  if (phase_ == Phase::serving && health.answer.status != 200) return health;
  return phase_ == Phase::serving ? short_reply(200, "ok") : short_reply(503, reason_);
}

Guard::Judgement Site::judge(const Request& request, const Caller& caller, base::Instant now) {
  const std::string_view cookie = cookie_in(request.cookies, cookie_name());
  if (!request.authorization.empty() || cookie.empty())
    return guard_.judge(request.authorization, caller.unit, now);
  const Digest* const token = sessions_->find(cookie, now);
  const Right right = token == nullptr ? Right::none : guard_.right_of(*token);
  if (right == Right::none) return {Guard::Verdict::unknown};
  return {Guard::Verdict::known, right, *token};
}

bool Site::takes_body(const Request& request) const {
  return sessions_ && request.is_post && request.body_bytes &&
         *request.body_bytes <= form_bytes_max &&
         (request.target == "/login" || request.target == "/logout");
}

/// What changes something here; so it has to come from a page of this server.
Reply Site::reply_to_form(const Request& request, const Caller& caller, base::Instant now) {
  if (!is_own_page(request.origin, request.fetch_site, request.host.value_or("")))
    return refusal(403, "A form is taken from a page of this server alone.");
  if (request.target == "/login") return log_in(request, caller, now);
  sessions_->end(cookie_in(request.cookies, cookie_name()));
  return with_cookie("", std::chrono::seconds(0));
}

Reply Site::log_in(const Request& request, const Caller& caller, base::Instant now) {
  const bool is_form = request.content_type.starts_with("application/x-www-form-urlencoded");
  const auto token = is_form ? field_of_form(request.body, "token") : std::nullopt;
  if (!token) return refusal(400, "The form has to be urlencoded, with a field \"token\".");
  const Guard::Judgement judgement = guard_.judge_token(*token, caller.unit, now);
  if (judgement.verdict != Guard::Verdict::known)
    return reply_of_stranger(judgement, caller, request);
  const auto name = sessions_->begin(judgement.digest, now);
  if (!name) return refusal(500, "The system gives no random bytes, or no memory.");
  return with_cookie(*name, Sessions::lifetime);
}

/// By TLS a browser sees to it that no other host and no plain page has set it.
std::string_view Site::cookie_name() const {
  return transport_ == Transport::tls ? "__Host-muster" : "muster";
}

Reply Site::with_cookie(std::string_view value, std::chrono::seconds age) const {
  Reply reply = refusal(303, "The page is at /.");
  reply.more_head = "Location: /\r\nSet-Cookie: " + std::string(cookie_name()) + "=";
  reply.more_head.append(value).append("; Path=/; Max-Age=" + std::to_string(age.count()));
  reply.more_head.append("; HttpOnly; SameSite=Strict");
  reply.more_head.append(transport_ == Transport::tls ? "; Secure\r\n" : "\r\n");
  return reply;
}

Reply Site::reply_of_stranger(const Guard::Judgement& judgement, const Caller& caller,
                              const Request& request) const {
  if (judgement.verdict == Guard::Verdict::too_many) {
    Reply reply =
        refusal(429, "Too many wrong tokens have come from this address: wait for a minute.");
    reply.more_head = "Retry-After: 60\r\n";
    return reply;
  }
  if (judgement.is_to_be_told)
    log(LogLevel::warning, "http: a wrong token came from " + caller.address);
  Reply reply =
      refusal(401,
              "No token, or a wrong one: a line of the head is Authorization: Bearer TOKEN. "
              "musterctl keygen --http makes one.");
  reply.more_head = "WWW-Authenticate: Bearer realm=\"muster\"\r\n";
  if (request.accept.find("text/html") != std::string::npos) {
    reply.answer.type = "text/html; charset=utf-8";
    reply.answer.body = login_page;
    reply.answer.content_policy = login_policy;
  }
  return reply;
}

const Route* Site::route_for(std::string_view path) const {
  const Route* found = nullptr;
  for (const Route& route : routes_) {
    const bool fits =
        route.prefix.ends_with('/') ? path.starts_with(route.prefix) : path == route.prefix;
    if (fits && (found == nullptr || route.prefix.size() > found->prefix.size())) found = &route;
  }
  return found;
}

bool Site::may_go_on(const Request& request) const {
  const auto target = read_target(request.target);
  const Route* const found = request.is_get && target ? route_for(target->path) : nullptr;
  return found != nullptr && found->goes_on;
}

Reply Site::reply_of_routes(const Target& target, const Request& request, Right right,
                            std::uint64_t position) const {
  const Route* const found = route_for(target.path);
  if (found == nullptr) return refusal(404, "There is nothing at this path.");
  if (right < found->needs) return refusal(403, "The token has no right to this.");
  try {
    return {found->handler({target.path, target.query, request.accept, right, position})};
  } catch (const std::exception&) {
    return refusal(500, "The answer could not be made: memory may be short.");
  }
}

}  // namespace muster::server::http
