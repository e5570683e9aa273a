#include <deque>
#include <string>
#include <utility>

#include "core/inspector.h"
#include "core/watch/look.h"
#include "wire/reply.h"

// What those see who look from the server's own process: what operators are told who may see
// everything, page by page.

namespace muster::core {
namespace {

constexpr std::uint64_t looked_bytes_max = 16u << 20;
constexpr std::uint64_t glances_bytes_max = 8u << 20;
constexpr std::uint32_t slots_per_piece = 8192;

void add_page(Looked& looked, std::string page) {
  looked.bytes += page.size();
  looked.pages.push_back(std::move(page));
  if (looked.bytes > looked_bytes_max) looked.state = Looked::State::too_large;
}

template <class Reply>
void add_page(Looked& looked, const Reply& reply) {
  std::string page;
  wire::append_body(page, reply);
  add_page(looked, std::move(page));
}

}  // namespace

void Inspector::go_on(const Look& look, Looked& looked) {
  if (look.subject == Look::Subject::name_spaces) return go_on_with_name_spaces(looked);
  if (look.subject == Look::Subject::all_groups) return go_on_with_all_groups(looked);
  if (look.subject == Look::Subject::history) return go_on_with_history(look, looked);
  NameSpace* const name_space = name_spaces_.find(look.name_space);
  if (name_space != nullptr) {
    go_on_in(*name_space, look, looked);
  } else {
    const bool is_default = look.name_space.empty() && look.subject != Look::Subject::group;
    looked.state = is_default ? Looked::State::done : Looked::State::not_found;
  }
  looked.has_begun = true;
}

void Inspector::go_on_in(NameSpace& name_space, const Look& look, Looked& looked) {
  const auto add = [&looked](const auto& reply, bool is_empty) {
    if (is_empty) {
      looked.state = Looked::State::done;
    } else {
      add_page(looked, reply);
    }
    return !is_empty;
  };
  if (look.subject == Look::Subject::sessions) {
    const auto reply = page(name_space, Viewer(), wire::Sessions{looked.after_number});
    if (add(reply, reply.sessions.empty())) looked.after_number = reply.sessions.back().id;
  } else if (look.subject == Look::Subject::waiters) {
    std::deque<std::string> targets;
    const auto reply = page(name_space, Viewer(), wire::Waiters{looked.after_number}, targets);
    if (add(reply, reply.waiters.empty())) looked.after_number = reply.waiters.back().session;
  } else if (look.subject == Look::Subject::groups) {
    const auto reply = name_space.groups.page(Viewer(), looked.after_name);
    if (add(reply, reply.groups.empty())) looked.after_name = reply.groups.back().name;
  } else if (look.subject == Look::Subject::group) {
    const auto& groups = name_space.groups.state().groups;
    const auto found = groups.find(look.name);
    looked.state = found != groups.end() ? Looked::State::done : Looked::State::not_found;
    if (found != groups.end()) looked.pages.push_back(found->second->report());
  } else if (look.subject == Look::Subject::waiting_groups) {
    go_on_with_waiting(name_space.groups.state(), looked);
  } else {
    if (!looked.has_begun) looked.prefixes = PrefixCounts(static_cast<std::uint32_t>(look.number));
    const auto slot = static_cast<std::uint32_t>(looked.after_number);
    looked.after_number = name_space.table.count_prefixes(slot, slots_per_piece, looked.prefixes);
    if (looked.after_number == 0) looked.state = Looked::State::done;
  }
}

/// One group in which somebody waits; the others are passed over, some at a time.
void Inspector::go_on_with_waiting(const GroupsState& state, Looked& looked) {
  constexpr int groups_per_piece = 256;
  auto next = looked.has_begun ? state.groups.upper_bound(looked.after_name) : state.groups.begin();
  for (int count = 0; next != state.groups.end() && count < groups_per_piece; ++next, ++count) {
    looked.after_name = next->first;
    if (!next->second->has_waiters()) continue;
    looked.names.push_back(next->first);
    return add_page(looked, next->second->report());
  }
  if (next == state.groups.end()) looked.state = Looked::State::done;
}

void Inspector::go_on_with_name_spaces(Looked& looked) {
  wire::NameSpaces request;
  if (looked.has_begun) request.after = looked.after_name;
  looked.has_begun = true;
  const auto reply = page(Viewer(), request);
  if (reply.name_spaces.empty()) {
    looked.state = Looked::State::done;
    return;
  }
  add_page(looked, reply);
  looked.after_name = reply.name_spaces.back().name;
}

/// Namespaces without groups are passed over, some at a time.
void Inspector::go_on_with_all_groups(Looked& looked) {
  constexpr int name_spaces_per_piece = 64;
  const NameSpace* name_space = looked.has_begun ? name_spaces_.find(looked.name_space) : nullptr;
  if (name_space == nullptr) {
    const auto before =
        looked.has_begun ? std::optional<std::string_view>(looked.name_space) : std::nullopt;
    name_space = name_spaces_.after(before);
    looked.after_name.clear();
  }
  looked.has_begun = true;
  for (int count = 0; name_space != nullptr && count < name_spaces_per_piece; ++count) {
    looked.name_space = name_space->name;
    const auto reply = name_space->groups.page(Viewer(), looked.after_name);
    if (!reply.groups.empty()) {
      looked.names.push_back(name_space->name);
      looked.after_name = reply.groups.back().name;
      return add_page(looked, reply);
    }
    looked.after_name.clear();
    name_space = name_spaces_.after(name_space->name);
    if (name_space != nullptr) looked.name_space = name_space->name;
  }
  if (name_space == nullptr) looked.state = Looked::State::done;
}

/// Its last page is empty, and says what is not known any more.
void Inspector::go_on_with_history(const Look& look, Looked& looked) {
  if (!looked.has_begun) looked.after_number = look.number;
  looked.has_begun = true;
  const auto reply =
      name_spaces_.history().page(look.name_space, Viewer(), {look.name, looked.after_number});
  add_page(looked, reply);
  if (!reply.records.empty()) {
    looked.after_number = reply.records.back().serial;
  } else if (looked.state == Looked::State::going_on) {
    looked.state = Looked::State::done;
  }
}

void Inspector::go_on(Glances& glances, std::uint64_t weight_max) {
  const NameSpace* name_space = nullptr;
  if (glances.name_space) {
    name_space = name_spaces_.find(*glances.name_space);
    if (name_space == nullptr) {
      name_space = name_spaces_.after(*glances.name_space);
      glances.group.clear();
    }
  } else {
    name_space = name_spaces_.after(std::nullopt);
  }
  for (std::uint64_t weight = 0; name_space != nullptr;) {
    const std::size_t before = glances.groups.size();
    const bool has_more =
        glance_at(name_space->groups.state(), glances.group, weight_max - weight, glances.groups);
    for (std::size_t index = before; index < glances.groups.size(); ++index) {
      GroupGlance& glance = glances.groups[index];
      glance.name_space = name_space->name;
      glances.bytes += glance.bytes();
      weight += 16 + glance.world_size;
    }
    glances.name_space = name_space->name;
    if (glances.bytes > glances_bytes_max) break;
    weight += 4;
    if (glances.groups.size() > before) glances.group = glances.groups.back().name;
    if (has_more || weight >= weight_max) return;
    glances.group.clear();
    name_space = name_spaces_.after(name_space->name);
  }
  glances.is_done = true;
}

}  // namespace muster::core
