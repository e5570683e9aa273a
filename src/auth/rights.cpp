#include "auth/rights.h"

#include <array>
#include <utility>

#include "auth/fields.h"

namespace muster::auth {
namespace {

using wire::Right;

constexpr std::string_view name_of_all = "all";
constexpr std::array<std::pair<std::string_view, Right>, 7> names_of_rights = {{
    {"read", Right::read},
    {"write", Right::write},
    {"join", Right::join},
    {"observe", Right::observe},
    {"supervise", Right::supervise},
    {"admin", Right::admin},
    {"peer", Right::peer},
}};

constexpr Rights all_of_job() {
  Rights rights;
  for (const Right right : Rights::of_job) rights.add(right);
  return rights;
}

constexpr Rights all_of(wire::Role role) {
  Rights rights;
  for (const auto& [name, right] : names_of_rights) {
    if (wire::has_right(role, right)) rights.add(right);
  }
  return rights;
}

Rights with(Rights rights, std::string_view name) {
  for (const auto& [known, right] : names_of_rights) {
    if (name == known || (name == name_of_all && all_of_job().has(right))) rights.add(right);
  }
  return rights;
}

}  // namespace

Rights rights_of(wire::Role role) {
  static const std::array by_role = {all_of(wire::Role::client), all_of(wire::Role::observer),
                                     all_of(wire::Role::supervisor)};
  static_assert(by_role.size() == static_cast<std::size_t>(wire::last_role) + 1);
  const auto index = static_cast<std::size_t>(role);
  return index < by_role.size() ? by_role[index] : Rights();
}

std::optional<Rights> read_rights(std::string_view text) {
  Rights rights;
  for (Fields names(text, ','); const auto name = names.next();) {
    const Rights more = with(rights, *name);
    if (more == rights) return {};
    rights = more;
  }
  return rights;
}

std::string to_string(Rights rights) {
  std::string text;
  const auto append = [&text](std::string_view name) {
    if (!text.empty()) text += ',';
    text += name;
  };
  const bool has_all = (rights & all_of_job()) == all_of_job();
  if (has_all && !rights.has(Right::admin)) append(name_of_all);
  for (const auto& [name, right] : names_of_rights) {
    const bool is_told = has_all && all_of_job().has(right);
    if (rights.has(right) && !is_told) append(name);
  }
  return text;
}

}  // namespace muster::auth
