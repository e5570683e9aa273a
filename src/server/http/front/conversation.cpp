#include "server/http/front/conversation.h"

#include <array>
#include <cstdio>
#include <utility>
#include <variant>

namespace muster::server::http {
namespace {

/// Pages take what they need from here alone, and nobody else's page takes anything from here.
constexpr std::string_view policy_of_all =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
/// To name no referrer at all would also make browsers send a form with "Origin: null".
constexpr std::string_view head_of_all =
    "Cache-Control: no-store\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n"
    "Referrer-Policy: same-origin\r\n"
    "X-Content-Type-Options: nosniff\r\n";

/// By hand: `strftime` would take the names of a host's language.
std::string date_text(std::time_t date) {
  constexpr std::array<const char*, 7> days = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr std::array<const char*, 12> months = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                  "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  std::tm parts{};
  ::gmtime_r(&date, &parts);
  const auto two = [](int number) {
    return std::string(number < 10 ? "0" : "") + std::to_string(number);
  };
  return std::string(days[static_cast<std::size_t>(parts.tm_wday) % days.size()]) + ", " +
         two(parts.tm_mday) + " " + months[static_cast<std::size_t>(parts.tm_mon) % months.size()] +
         " " + std::to_string(parts.tm_year + 1900) + " " + two(parts.tm_hour) + ":" +
         two(parts.tm_min) + ":" + two(parts.tm_sec) + " GMT";
}

bool is_head_text(std::string_view text) {
  return text.find_first_of(std::string_view("\r\n\0", 3)) == text.npos;
}

enum class Body { whole, left_out, in_pieces, until_end };
enum class After { more, end };

std::string text_of(const Reply& reply, std::time_t date, Body body, After after) {
  const Answer& answer = reply.answer;
  std::string text = "HTTP/1.1 " + std::to_string(answer.status) + " ";
  text.append(phrase_of(answer.status)).append("\r\n");
  text.append("Date: ").append(date_text(date)).append("\r\n");
  if (is_head_text(answer.type)) text.append("Content-Type: ").append(answer.type).append("\r\n");
  if (body == Body::in_pieces) text.append("Transfer-Encoding: chunked\r\n");
  if (body == Body::whole || body == Body::left_out)
    text.append("Content-Length: ").append(std::to_string(answer.body.size())).append("\r\n");
  const bool has_policy = !answer.content_policy.empty() && is_head_text(answer.content_policy);
  text.append("Content-Security-Policy: ");
  text.append(has_policy ? answer.content_policy : policy_of_all).append("\r\n");
  text.append(head_of_all).append(reply.more_head);
  text.append(after == After::end ? "Connection: close\r\n\r\n" : "Connection: keep-alive\r\n\r\n");
  if (body == Body::whole) text += answer.body;
  return text;
}

/// To bytes that begin no request.
Reply refusal_of_other_protocol(std::string_view bytes) {
  const bool is_tls = bytes.front() == '\x16';
  return Site::refusal(400, is_tls ? "TLS is not spoken at this port: the address is http://..."
                                   : "A request begins with METHOD TARGET HTTP/1.1.");
}

/// That is asked again.
constexpr std::chrono::milliseconds soon(50);

}  // namespace

Conversation::Output Conversation::farewell(const Reply& reply, Moment moment) {
  return {text_of(reply, moment.date, Body::whole, After::end), true};
}

Conversation::Output Conversation::give_up(const Reply& refusal, Moment moment) {
  has_ended_ = true;
  open_.reset();
  bytes_.clear();
  return farewell(refusal, moment);
}

void Conversation::take(std::string_view bytes) {
  if (bytes_.empty()) {  // an empty line before a request is left out
    const std::size_t begin = bytes.find_first_not_of("\r\n");
    bytes.remove_prefix(begin == bytes.npos ? bytes.size() : begin);
  }
  bytes_ += bytes;
}

std::optional<Conversation::Output> Conversation::go_on(Moment moment) {
  if (open_) return answer(moment);
  if (has_ended_ || bytes_.empty()) return {};
  const Limits& limits = site_.limits();
  if (!may_be_request(bytes_)) return give_up(refusal_of_other_protocol(bytes_), moment);
  const auto end = end_of_head(bytes_, std::exchange(looked_at_, bytes_.size()));
  if (!end && bytes_.size() < limits.head_bytes_max) return {};
  if (!end || *end > limits.head_bytes_max) {
    const bool has_line = bytes_.find('\n') < limits.head_bytes_max;
    return give_up(
        Site::refusal(has_line ? 431 : 414, "The head of a request has at most " +
                                                std::to_string(limits.head_bytes_max) + " bytes."),
        moment);
  }
  auto read = read_head(std::string_view(bytes_).substr(0, *end), limits.target_bytes_max);
  if (const auto* const refused = std::get_if<Refused>(&read))
    return give_up(Site::refusal(refused->status, refused->why), moment);
  looked_at_ = 0;
  Request& request = std::get<Request>(read);
  const bool takes_body = site_.takes_body(request);
  const std::size_t body_bytes = takes_body ? *request.body_bytes : 0;
  if (bytes_.size() - *end < body_bytes) return {};
  request.body = bytes_.substr(*end, body_bytes);
  bytes_.erase(0, *end + body_bytes);
  bytes_.erase(0, bytes_.find_first_not_of("\r\n"));
  // Another body is not read, so that nothing behind it can be found.
  const bool has_rest = request.has_body && !takes_body;
  const bool is_last = !request.keeps_alive || has_rest || !caller_.has_place;
  open_.emplace(Open{std::move(request), moment.now});
  open_->is_last = is_last;
  return answer(moment);
}

Conversation::Output Conversation::answer(Moment moment) {
  Open& open = *open_;
  const Limits& limits = site_.limits();
  const std::chrono::milliseconds pause(limits.stream_ms);
  open.held.set(nullptr, 0);  // what was written has left
  const bool is_new = !open.has_begun && open.place == nullptr;
  if (is_new && caller_.has_place && site_.may_go_on(open.request)) {
    open.place = site_.take_stream(caller_);
    if (open.place == nullptr) return refuse_stream(moment);
  }
  const bool is_crowded = open.place != nullptr && site_.stream_bytes() > limits.stream_bytes_max;
  if (is_crowded) return Output{{}, false, pause};
  Reply reply = site_.reply(open.request, caller_, moment.now, open.position);
  if (open.has_begun) return go_on_with_stream(reply, moment);
  if (reply.answer.status == later) {
    const bool may_wait = moment.now - open.since < std::chrono::milliseconds(limits.answer_ms);
    if (may_wait) return Output{{}, false, soon};
    reply = Site::refusal(503, "The server has not told it in time: is it paused, or hung?");
  }
  if (reply.answer.goes_on_at != 0 && open.place != nullptr) return begin_stream(reply, moment);
  const After after = open.is_last ? After::end : After::more;
  const Body body = open.request.is_head ? Body::left_out : Body::whole;
  has_ended_ = open.is_last;
  if (has_ended_) bytes_.clear();
  open_.reset();
  return Output{text_of(reply, moment.date, body, after), has_ended_};
}

// An answer that goes on is the last of its connection.

Conversation::Output Conversation::begin_stream(const Reply& reply, Moment moment) {
  const Body body = open_->request.is_1_1 ? Body::in_pieces : Body::until_end;
  open_->has_begun = true;
  bytes_.clear();
  Output output = go_on_with_stream(reply, moment);
  output.bytes.insert(0, text_of(reply, moment.date, body, After::end));
  return output;
}

Conversation::Output Conversation::go_on_with_stream(const Reply& reply, Moment moment) {
  Open& open = *open_;
  const Limits& limits = site_.limits();
  const std::chrono::milliseconds pause(limits.stream_ms);
  const Answer& answer = reply.answer;
  const bool goes_on = answer.status == later || (answer.status == 200 && answer.goes_on_at != 0);
  if (!goes_on) return end_stream();
  if (answer.status != later) open.position = answer.goes_on_at;
  std::string bytes = piece(answer.status == later ? std::string_view() : answer.body);
  const bool is_quiet =
      bytes.empty() && moment.now - open.last_piece >= std::chrono::milliseconds(limits.comment_ms);
  if (is_quiet) bytes = piece(":\n\n");
  if (!bytes.empty()) open.last_piece = moment.now;
  open.held.set(&site_.stream_bytes(), bytes.size());
  return Output{std::move(bytes), false, pause};
}

Conversation::Output Conversation::refuse_stream(Moment moment) {
  const Limits& limits = site_.limits();
  Reply reply = Site::refusal(
      503, "All streams are taken: there are " + std::to_string(limits.streams_max) + ", and " +
               std::to_string(limits.streams_per_address_max) + " of an address.");
  reply.more_head = "Retry-After: 10\r\n";
  return give_up(reply, moment);
}

Conversation::Output Conversation::end_stream() {
  const bool is_in_pieces = open_->request.is_1_1;
  has_ended_ = true;
  open_.reset();
  return Output{is_in_pieces ? "0\r\n\r\n" : "", true};
}

std::string Conversation::piece(std::string_view body) {
  if (body.empty()) return {};
  if (!open_->request.is_1_1) return std::string(body);
  std::array<char, 20> size{};
  std::snprintf(size.data(), size.size(), "%zx\r\n", body.size());
  return std::string(size.data()).append(body).append("\r\n");
}

std::optional<Conversation::Output> Conversation::time_out(Moment moment) const {
  if (!caller_.has_place) return farewell(site_.reply_to_crowd(), moment);
  if (!is_in_request()) return {};
  return farewell(Site::refusal(408, "The request did not come whole in " +
                                         std::to_string(site_.limits().head_ms) + " ms."),
                  moment);
}

}  // namespace muster::server::http
