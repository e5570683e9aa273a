#include "sweeper.h"

#include <charconv>

#include "body.h"

namespace muster::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t keys_per_call = 500;

}  // namespace

Sweeper::Sweeper(const Identity& identity, Town& town, Clock clock, Then then)
    : town_(town),
      name_space_(identity.name_space),
      then_(then),
      client_(identity, town.scheduler, town.network, town.server, clock) {
  client_.violated = [this](const std::string& what) { town_.oracle.problem("sweeper: " + what); };
}

void Sweeper::ask(const wire::RequestBody& body, Use use) {
  ++calls_pending_;
  client_.call(body, 10s, [this, use = std::move(use)](const auto& reply, protocol::Fate) {
    --calls_pending_;
    if (reply) {
      use(*reply);
    } else if (reply.error().code == ErrorCode::not_found) {
      use("");
    } else {
      town_.oracle.problem("sweeper: " + reply.error().message());
    }
    close_if_done();
  });
}

/// A call that is pending when its store is closed fails with `closed`, so the sweeper waits for
/// all of its calls first.
void Sweeper::close_if_done() {
  if (!is_swept_ || calls_pending_ != 0 || is_done_) return;
  is_done_ = true;
  client_.close();
}

void Sweeper::begin() {
  client_.open();
  read_back();
  read_queues();
  list(0);
}

void Sweeper::read_back() {
  KeyModel& keys = town_.oracle.keys;
  const std::uint64_t table = table_of(town_.server.incarnation(), name_space_);
  for (const auto& [key, confirmed] : keys.counters()) {
    if (key.first != table) continue;
    ask(wire::Add{key.second, 0}, [](const std::string&) {});  // so that it is there
    ask(wire::Get{key.second}, [&keys, at = key](const std::string& body) {
      const auto text = body_of<wire::ValueReply>(body).value;
      std::int64_t number = 0;
      std::from_chars(text.data(), text.data() + text.size(), number);
      keys.counted(at, number);
    });
  }
  for (const auto& key : keys.logs()) {
    if (key.first != table) continue;
    ask(wire::Append{key.second, ""}, [](const std::string&) {});
    ask(wire::Get{key.second}, [&keys, at = key](const std::string& body) {
      keys.read_log(at, std::string(body_of<wire::ValueReply>(body).value));
    });
  }
  for (const auto& key : keys.items()) {
    if (key.first != table) continue;
    const auto before = keys.look_begins(key);
    ask(wire::Exists{{key.second}}, [&keys, before, at = key](const std::string& body) {
      keys.item_seen(at, before, body_of<wire::PresenceReply>(body).present.at(0));
    });
  }
}

void Sweeper::read_queues() {
  QueueModel& queues = town_.oracle.queues;
  const std::uint64_t table = table_of(town_.server.incarnation(), name_space_);
  for (const auto& key : queues.queues()) {
    if (key.first != table) continue;
    const auto before = queues.look_begins(key);
    ask(wire::QueueLength{key.second}, [this, before, at = key](const std::string& body) {
      const std::int64_t count = body_of<wire::NumberReply>(body).number;
      town_.oracle.queues.counted(at, before, count);
      for (std::int64_t left = then_ == Then::removes ? count : 0; left > 0; --left) pop(at);
    });
  }
}

void Sweeper::pop(const KeyModel::Key& key) {
  const auto begun = town_.oracle.queues.pop_begins(key);
  ask(wire::QueuePop{key.second}, [this, begun, key](const std::string& body) {
    town_.oracle.queues.popped(key, begun, std::string(body_of<wire::ValueReply>(body).value));
  });
}

void Sweeper::list(std::uint64_t cursor) {
  wire::List request;
  request.cursor = cursor;
  request.count_max = 50;
  ask(request, [this](const std::string& body) {
    const auto page = body_of<wire::ListReply>(body);
    for (const wire::ListEntry& entry : page.entries) {
      const std::string name(entry.name);
      if (!listed_.insert(name).second) town_.oracle.problem("listed twice: " + name);
      if (entry.bound) town_.oracle.problem("outlives its session: " + name);
      if (entry.ttl) town_.oracle.problem("outlives its time: " + name);
    }
    if (page.cursor != 0) return list(page.cursor);
    if (then_ == Then::removes) return remove();
    is_swept_ = true;
  });
}

void Sweeper::remove() {
  if (listed_.empty()) {
    is_swept_ = true;
    return;
  }
  wire::Remove request;
  std::set<std::string> removed;
  while (!listed_.empty() && removed.size() < keys_per_call) {
    removed.insert(listed_.extract(listed_.begin()));
  }
  request.keys.assign(removed.begin(), removed.end());
  const auto count = static_cast<std::int64_t>(removed.size());
  ask(request, [this, count](const std::string& body) {
    if (body_of<wire::NumberReply>(body).number != count) {
      town_.oracle.problem("a key that was listed was not there");
    }
    remove();
  });
}

Dropper::Dropper(const Identity& identity, Town& town, Clock clock)
    : town_(town), client_(identity, town.scheduler, town.network, town.server, clock) {
  client_.violated = [this](const std::string& what) { town_.oracle.problem("dropper: " + what); };
}

void Dropper::begin(const std::string& name_space, std::size_t keys_count) {
  client_.open();
  client_.call(
      wire::DropNameSpace{name_space}, 10s, [this, keys_count](const auto& reply, protocol::Fate) {
        is_done_ = true;
        const bool is_absent = !reply && reply.error().code == ErrorCode::not_found;
        if (is_absent && keys_count != 0) town_.oracle.problem("dropper: nothing is there");
        if (!reply && !is_absent) {
          town_.oracle.problem("dropper: " + reply.error().message());
        }
        if (reply &&
            body_of<wire::NumberReply>(*reply).number != static_cast<std::int64_t>(keys_count)) {
          town_.oracle.problem("dropper: not all keys were there, or others");
        }
        client_.close();
      });
}

}  // namespace muster::sim
