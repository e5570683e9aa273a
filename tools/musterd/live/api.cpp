#include "api.h"

#include <algorithm>
#include <utility>

#include "embedded.h"
#include "json/documents.h"
#include "json/why.h"
#include "query.h"
#include "view_json.h"

// Nothing here waits: what the server has not told yet is asked for again by the front.

namespace musterd {
namespace {

namespace http = muster::server::http;
using muster::Duration;
using muster::Error;
using muster::ErrorCode;
using muster::Result;
using muster::json::json_of;

constexpr Duration nothing{};
/// From when on a group hangs that waits, as of `musterctl why`.
constexpr Duration hangs_after = std::chrono::seconds(10);
constexpr const char* json_type = "application/json; charset=utf-8";
constexpr int depth_max = 4;

http::Answer not_yet() { return {http::later, json_type, {}}; }

http::Answer answer_of(const Json& document, int status = 200) {
  return {status, json_type, muster::json::text_of(document, -1)};
}

http::Answer failed(int status, ErrorCode code, std::string detail) {
  Error error;
  error.code = code;
  error.detail = std::move(detail);
  return answer_of({{"error", json_of(error)}}, status);
}

http::Answer invalid(std::string why) {
  return failed(400, ErrorCode::invalid_argument, std::move(why));
}

http::Answer invalid_name_space() {
  return invalid("the parameter namespace has an escape that is wrong: %2F and the like are right");
}

http::Answer answer_of(const Error& error) {
  if (error.code == ErrorCode::unavailable) return not_yet();
  return answer_of({{"error", json_of(error)}}, error.code == ErrorCode::not_found ? 404 : 503);
}

template <class T>
http::Answer answer_of_list(const Result<std::vector<T>>& list) {
  return list ? answer_of(muster::json::list_of(*list)) : answer_of(list.error());
}

/// The default one, where none is named; nothing: it is wrong.
std::optional<std::string> name_space_in(const Query& query) {
  return query.has("namespace") ? query.value("namespace") : std::string();
}

http::Answer page_answer(const http::Question& question) {
  if (question.path != "/") {
    return {404, "text/plain; charset=utf-8",
            "There is nothing at this path: /, /metrics, /healthz, /readyz, and what "
            "/api/v1/openapi.json describes.\n"};
  }
  return {200, "text/html; charset=utf-8", std::string(page()), std::string(page_policy())};
}

}  // namespace

void Api::set(muster::Watch watch) {
  const std::lock_guard lock(mutex_);
  watch_ = std::move(watch);
}

void Api::set_draining(bool is_draining) {
  const std::lock_guard lock(mutex_);
  is_draining_ = is_draining;
}

std::vector<http::Route> Api::routes() {
  using Names = std::vector<std::string_view>;
  const auto route = [this](const char* path, Handler handler, const Names& parameters = {}) {
    return http::Route{std::string("/api/v1/") + path, http::Right::read,
                       [this, handler, parameters](const Question& question) {
                         return answer(handler, parameters, question);
                       }};
  };
  std::vector<http::Route> routes = {
      {"/", http::Right::read, page_answer},
      {"/api/v1/openapi.json", http::Right::read,
       [](const Question&) {
         return Answer{200, json_type, std::string(openapi())};
       }},
      route("server", &Api::server),
      route("namespaces", &Api::namespaces),
      route("sessions", &Api::sessions, {"namespace"}),
      route("groups", &Api::groups, {"namespace"}),
      route("group", &Api::group, {"namespace", "name"}),
      route("why", &Api::why, {"namespace", "name"}),
      route("waiters", &Api::waiters, {"namespace"}),
      route("events", &Api::events, {"namespace", "group", "after"}),
      route("prefixes", &Api::prefixes, {"namespace", "depth"}),
      route("stream", &Api::stream),
  };
  routes.back().goes_on = true;
  return routes;
}

http::Answer Api::answer(Handler handler, const std::vector<std::string_view>& parameters,
                         const Question& question) {
  std::string problem = Query(question.query).problem(parameters);
  if (!problem.empty()) return invalid(std::move(problem));
  std::optional<muster::Watch> watch;
  {
    const std::lock_guard lock(mutex_);
    watch = watch_;
  }
  if (!watch) return not_yet();
  return (this->*handler)(*watch, question);
}

Json Api::server_document(const muster::Overview& overview) const {
  const std::lock_guard lock(mutex_);
  return {{"version", facts_.version},
          {"pid", facts_.pid},
          {"host", facts_.host},
          {"started", unix_ms(overview.started)},
          {"credentials", facts_.asks_for_credentials},
          {"draining", is_draining_}};
}

http::Answer Api::server(const muster::Watch& watch, const Question&) {
  const auto overview = watch.overview(nothing);
  if (overview == nullptr) return not_yet();
  Json document = server_document(*overview);
  document["uptime_ms"] = unix_ms(overview->now) - unix_ms(overview->started);
  document["limits"] = json_of(overview->limits);
  return answer_of(document);
}

http::Answer Api::namespaces(const muster::Watch& watch, const Question&) {
  return answer_of_list(watch.namespaces(nothing));
}

http::Answer Api::sessions(const muster::Watch& watch, const Question& question) {
  const auto name_space = name_space_in(Query(question.query));
  if (!name_space) return invalid_name_space();
  return answer_of_list(watch.sessions(*name_space, nothing));
}

http::Answer Api::groups(const muster::Watch& watch, const Question& question) {
  const Query query(question.query);
  const auto name_space = name_space_in(query);
  if (!name_space) return invalid_name_space();
  if (query.has("namespace")) return answer_of_list(watch.groups(*name_space, nothing));
  const auto all = watch.all_groups(nothing);
  if (!all) return answer_of(all.error());
  Json list = Json::array();
  for (const auto& [own, group] : *all) {
    Json document = json_of(group);
    muster::json::add_bytes(document, "namespace", own);
    list.push_back(std::move(document));
  }
  return answer_of(list);
}

http::Answer Api::group(const muster::Watch& watch, const Question& question) {
  const Query query(question.query);
  const auto name_space = name_space_in(query);
  if (!name_space) return invalid_name_space();
  const auto name = query.value("name");
  if (!name || name->empty())
    return invalid(
        "the parameter name, that of the group, is missing, or an escape in it is wrong");
  const auto report = watch.group(*name_space, *name, nothing);
  if (!report) return answer_of(report.error());
  return answer_of(json_of(*report, hangs_after));
}

http::Answer Api::why(const muster::Watch& watch, const Question& question) {
  const Query query(question.query);
  if (query.has("name")) return group(watch, question);
  const auto name_space = name_space_in(query);
  if (!name_space) return invalid_name_space();
  const auto reports = watch.waiting_groups(*name_space, nothing);
  const auto waiters = watch.waiters(*name_space, nothing);  // both are asked for at once
  if (!reports) return answer_of(reports.error());
  if (!waiters) return answer_of(waiters.error());
  Json document = {{"hangs", false}, {"groups", Json::array()}, {"waiters", Json::array()}};
  for (const muster::GroupReport& report : *reports) {
    if (muster::json::hangs(report, hangs_after)) document["hangs"] = true;
    document["groups"].push_back(json_of(report, hangs_after));
  }
  for (const muster::WaiterInfo& waiter : *waiters) {
    if (muster::json::waits_for_keys(waiter)) document["waiters"].push_back(json_of(waiter));
  }
  return answer_of(document);
}

http::Answer Api::waiters(const muster::Watch& watch, const Question& question) {
  const auto name_space = name_space_in(Query(question.query));
  if (!name_space) return invalid_name_space();
  return answer_of_list(watch.waiters(*name_space, nothing));
}

http::Answer Api::events(const muster::Watch& watch, const Question& question) {
  const Query query(question.query);
  const auto name_space = name_space_in(query);
  if (!name_space) return invalid_name_space();
  const auto group = query.has("group") ? query.value("group") : std::string();
  if (!group)
    return invalid("the parameter group has an escape that is wrong: %2F and the like are right");
  const auto after = query.has("after") ? query.number("after") : 0;
  if (!after)
    return invalid(
        "the parameter after is the number of an event, such as the last one that you have");
  const auto history = watch.history(*name_space, *group, *after, nothing);
  return history ? answer_of(json_of(*history)) : answer_of(history.error());
}

http::Answer Api::prefixes(const muster::Watch& watch, const Question& question) {
  const Query query(question.query);
  const auto name_space = name_space_in(query);
  if (!name_space) return invalid_name_space();
  const auto depth = query.has("depth") ? query.number("depth") : 1;
  if (!depth || *depth < 1 || *depth > depth_max)
    return invalid("the parameter depth is 1 to " + std::to_string(depth_max));
  const auto prefixes = watch.prefixes(*name_space, static_cast<int>(*depth), nothing);
  return prefixes ? answer_of(json_of(*prefixes)) : answer_of(prefixes.error());
}

http::Answer Api::stream(const muster::Watch& watch, const Question& question) {
  const auto overview = watch.overview(nothing);
  if (overview == nullptr) return not_yet();
  if (!stream_) stream_.emplace(watch);
  const Stream::Piece piece = stream_->next(question.position, server_document(*overview));
  if (piece.version == 0) return not_yet();
  Answer answer{200, "text/event-stream", std::string(piece.text)};
  answer.goes_on_at = piece.version;
  return answer;
}

}  // namespace musterd
