#include "core/groups/objects.h"

#include <algorithm>
#include <deque>
#include <string>

#include "core/session/page.h"
#include "core/session/reply.h"

namespace muster::core {
namespace {

template <class... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};
template <class... Visitors>
Overloaded(Visitors...) -> Overloaded<Visitors...>;

std::string path_of(const ObjectPlace& place) {
  return std::visit(Overloaded{[](const StreamPlace& at) {
                                 return "stream/" + std::to_string(at.source) + "-" +
                                        std::to_string(at.destination) + "/tag/" +
                                        std::to_string(at.tag) + "/" + std::to_string(at.sequence);
                               },
                               [](const RoundPlace& at) {
                                 return "round/" + std::to_string(at.round) + "/rank/" +
                                        std::to_string(at.rank);
                               }},
                    place);
}

}  // namespace

void Objects::list(EngineServices& services, const RequestContext& context,
                   const wire::List& request) {
  const Options& options = services.options();
  const std::uint64_t end = slots_.end();
  std::uint64_t slot = std::min<std::uint64_t>(request.cursor, end);
  const std::uint32_t count_max = request.count_max == 0
                                      ? wire::list_entries_max
                                      : std::min(request.count_max, wire::list_entries_max);

  wire::ListReply reply;
  std::deque<std::string> names;  // does not move them: the entries point there
  std::uint64_t bytes = 0;
  for (std::uint32_t looked_at = 0; slot < end && looked_at < options.list_slots_per_page;
       ++looked_at) {
    if (reply.entries.size() == count_max || bytes >= page_bytes_max) break;
    const auto index = static_cast<std::uint32_t>(slot);
    slot = slots_.after(index);
    const Object* object = slots_.at(index);
    if (object == nullptr) continue;
    const Shelf& shelf = object->shelf;
    if (shelf.is_dropped(*object) || !shelf.roster_.is_known_to(context.session)) continue;
    std::string name = "group/" + shelf.roster_.group + "/epoch/" +
                       std::to_string(shelf.roster_.epoch) + "/" + path_of(object->place);
    if (!std::string_view(name).starts_with(request.prefix)) continue;
    wire::ListEntry entry;
    entry.name = names.emplace_back(std::move(name));
    entry.value_bytes = object->value->view().size();
    if (object->by_age.linked() && shelf.expires(*object) != base::far_future) {
      entry.ttl = std::max(shelf.expires(*object) - context.now, Duration::zero());
    }
    reply.entries.push_back(entry);
    bytes += encoded_bytes(entry);
  }
  services.effects().spend(reply.entries.size());
  reply.cursor = slot < end ? slot : 0;
  services.answer(context, answer_of(reply));
}

Object* Shelf::store(const ObjectPlace& place, std::uint32_t codec, std::string_view value) {
  HeldBytes record;
  if (!record.add(quota_, sizeof(Object))) return nullptr;
  Payload payload = services_.retain(quota_, value, Charging::reserve);
  if (payload == nullptr) return nullptr;
  return &put(place, codec, std::move(payload), std::move(record));
}

Object& Shelf::put(const ObjectPlace& place, std::uint32_t codec, Payload value, HeldBytes record) {
  Object& object = objects_.slots_.emplace(*this, place, codec, std::move(value), std::move(record),
                                           services_.now());
  ++services_.counted().held.objects;
  const auto* const in_stream = std::get_if<StreamPlace>(&place);
  if (in_stream != nullptr)
    ++roster_.members[in_stream->destination].streams.incoming_objects_count;
  return object;
}

bool Shelf::is_dropped(const Object& object) const {
  const auto* const place = std::get_if<StreamPlace>(&object.place);
  if (place == nullptr) return false;
  return !has_streams_ || !roster_.members[place->destination].live();
}

void Shelf::remove(Object& object) {
  const auto* const place = std::get_if<StreamPlace>(&object.place);
  if (!is_dropped(object)) {
    --services_.counted().held.objects;
    if (place != nullptr) --roster_.members[place->destination].streams.incoming_objects_count;
  }
  objects_.slots_.erase(object.slot);
}

void Shelf::let_age(Object& object) {
  object.stored = services_.now();
  const bool first = by_age_.empty();
  by_age_.append(object.by_age);
  if (first) rearm();
}

Object* Shelf::expired() const {
  if (by_age_.empty()) return nullptr;
  Object& oldest = by_age_.first();
  return expires(oldest) <= services_.now() ? &oldest : nullptr;
}

void Shelf::rearm() {
  if (!by_age_.empty()) services_.timers().arm(timer_, expires(by_age_.first()));
}

Instant Shelf::expires(const Object& object) const {
  const Duration expiration = roster_.data_expiration;
  const bool never =
      expiration == Duration::zero() || expiration >= base::far_future - object.stored;
  return never ? base::far_future : object.stored + expiration;
}

}  // namespace muster::core
