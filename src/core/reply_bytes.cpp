#include "core/reply_bytes.h"

#include <algorithm>
#include <variant>

#include "core/name_space.h"
#include "core/session/page.h"

// How long replies are going to be, before they are built. Nobody asks unless others wait to be
// sent, so what is looked up here is looked up again when the request is carried out.

namespace muster::core {
namespace {

/// An entry that a page ends behind: a name or some keys, and who it is.
constexpr std::uint64_t entries_behind_page = 4;
constexpr std::uint64_t status_bytes = prompt_reply_bytes;

/// Where nothing is said of an operation its reply is short: values of keys that are long, and what
/// many get, are sent from where they are.
struct ReplyBytes {
  const Options& options;
  const Session& session;
  const NameSpace& name_space = session.name_space;

  std::uint64_t page() const {
    return page_bytes_max + entries_behind_page * (options.limits.key_bytes_max + 512);
  }

  template <class Body>
  std::uint64_t operator()(const Body&) const {
    return 0;
  }
  std::uint64_t operator()(const wire::Exists& request) const { return request.keys.size(); }
  std::uint64_t operator()(const wire::MultiGet& request) const {
    const std::uint64_t bytes = name_space.table.bytes_of(request.keys);
    return bytes > options.limits.round_bytes_max ? 0 : bytes;  // then it is too large
  }
  std::uint64_t operator()(const wire::List&) const { return page(); }
  std::uint64_t operator()(const wire::Members& request) const {
    return name_space.groups.bytes_of_members(request.epoch);
  }
  std::uint64_t operator()(const wire::Recover& request) const {
    return request.streams.size() * sizeof(std::uint64_t);
  }
  std::uint64_t operator()(const wire::Status&) const { return status_bytes; }
  std::uint64_t operator()(const wire::GetSettings&) const { return status_bytes; }
  std::uint64_t operator()(const wire::Sessions&) const { return page(); }
  std::uint64_t operator()(const wire::Groups&) const { return page(); }
  std::uint64_t operator()(const wire::InspectGroup& request) const {
    return name_space.groups.bytes_of_group(session, request.group);
  }
  std::uint64_t operator()(const wire::Waiters&) const { return page(); }
  std::uint64_t operator()(const wire::NameSpaces&) const { return page(); }
  std::uint64_t operator()(const wire::History&) const { return page(); }
};

}  // namespace

std::uint64_t bytes_of_reply(const Options& options, const Session& session,
                             const wire::Request& request) {
  const Answer* const kept = session.requests.unacknowledged.find(request.id);
  const std::uint64_t kept_bytes = kept != nullptr ? kept->head.size() : 0;
  const ReplyBytes of{options, session};
  return std::max({short_reply_bytes, kept_bytes, std::visit(of, request.body)});
}

}  // namespace muster::core
