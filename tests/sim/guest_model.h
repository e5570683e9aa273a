#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/session/counts.h"
#include "guest_request.h"
#include "scheduler.h"
#include "trace.h"
#include "wire/request.h"

namespace muster::sim {

class Oracle;

/// TCPStore as a book of rules, for guests: told of each step that the server takes for them, in
/// that order, it knows each byte that each of them must have been sent after it. Knows one start
/// of the server.
class GuestModel {
 public:
  using Connection = std::uint64_t;
  struct Terms {
    Duration idle_lifetime{};
    Duration grace{};             ///< for which an item is reserved
    std::uint32_t waits_max = 0;  ///< of one guest
    bool is_memory_short = false;
  };

  GuestModel(Oracle& oracle, Trace& trace, const Terms& terms)
      : oracle_(oracle), trace_(trace), terms_(terms) {}

  // What guests do.
  void opens(Connection guest) { guests_[guest].id = guest; }
  void sends(Connection guest, const GuestRequest& request, std::size_t bytes_count);

  // What the server does.
  void started();
  void came(Connection guest, const std::string& name_space, Instant now);
  void arrived(Connection guest, std::size_t bytes_count);
  /// The request is in hand, again if it was put off.
  void reads(Connection guest, const server::tcpstore::Request& request);
  /// The next step of it was taken, or was refused: then the connection ends.
  void stepped(Connection guest, bool is_refused);
  void done(Connection guest);
  /// Nothing more can be read of it, ever.
  void cannot_read(Connection guest, bool is_for_memory);
  /// All that is whole was read.
  void has_read(Connection guest);
  void said(Connection guest, std::string_view bytes);
  /// Its session is over, or was never begun.
  void closed_by_engine(Connection guest);
  void gone(Connection guest, Instant now);
  /// The server's time, at each of its events.
  void time_is(Instant now) { now_ = now; }
  /// The server has looked which of its timers are due.
  void looked_at(Instant now);
  /// A client of Muster's own protocol has asked for something, and has had this answer.
  void own(const std::string& name_space, const wire::RequestBody& body, std::uint16_t code,
           const std::string& reply);
  /// It pops, and has to wait; what it is told is said to it as to guests.
  void own_waits(Connection neighbour, const std::string& key);
  /// Refused, which may be for want of memory.
  void own_is_refused();

  /// Somebody is answered who is no guest now.
  void answers_other(Connection connection);
  bool has_guests(const std::string& name_space) const;
  /// What must hold after each event.
  void check();
  /// What guests have on the server.
  core::Counts counts() const;
  const Terms& terms() const { return terms_; }
  std::uint64_t requests_count() const { return requests_count_; }

 private:
  struct Guest;
  struct Wait {
    Guest* guest = nullptr;  ///< null: it was given up
    std::size_t missing = 0;
    std::uint64_t number = 0;  ///< in the order in which they came
  };
  using WaitPlace = std::shared_ptr<Wait>;
  struct Store {
    std::map<std::string, std::string> values;
    std::map<std::string, std::deque<std::string>> queues;
    std::map<std::string, std::list<WaitPlace>> waiting;
    std::map<std::string, std::list<WaitPlace>> pops;  ///< of neighbours
    std::map<std::string, std::size_t> offers;         ///< items that are reserved for guests
    std::uint64_t guests = 0;
    Instant idle_since{};
  };
  struct Sent {
    GuestRequest request;
    std::uint64_t end = 0;  ///< of the bytes of its connection
  };
  struct Listing {
    std::set<std::string> always;  ///< was there all the time
    std::set<std::string> ever;
  };
  struct Guest {
    Connection id = 0;
    Store* store = nullptr;
    std::deque<Sent> sent;  ///< and not handled
    std::uint64_t sent_bytes = 0;
    std::uint64_t arrived_bytes = 0;
    bool is_ending = false;
    std::set<WaitPlace> waits;
    std::optional<std::string> offer;  ///< the key with an item that is reserved for it
    Instant offer_ends{};
    std::uint64_t offer_number = 0;  ///< in the order in which they were made
    // Of the request in hand.
    bool ends_waits = false;  ///< as each of PyTorch 1 does
    std::size_t step = 0;
    std::int64_t number = 0;
    bool is_released = false;
    std::optional<Listing> listing;
    std::size_t late = 0;  ///< waits that are over meanwhile
    // Since the last check.
    std::string owed;
    std::string said;
  };

  Guest* in_hand(Connection guest);
  bool has_come(const Store& store, const std::string& key) const;
  bool must_be_refused(const Guest& guest) const;
  bool may_be_refused(const Guest& guest) const;
  void carry_out(Guest& guest, const GuestRequest& request);
  std::string number_text(const Store& store, const std::string& key, std::int64_t delta) const;
  void set(Store& store, const std::string& key, std::string value);
  bool remove(Store& store, const std::string& key);
  void compare_set(Guest& guest, const GuestRequest& request);

  // Queues: guest_queues.cpp.
  std::size_t free_items(const Store& store, const std::string& key) const;
  void pop(Guest& guest, const std::string& key);
  std::string take_first(Store& store, const std::string& key);
  void push(Store& store, const std::string& key, const std::string& item);
  void serve_queue(Store& store, const std::string& key);
  void offer(Guest& guest, const std::string& key);
  void end_offer(Guest& guest);
  void end_old_offers(Instant now);
  bool own_of_queue(Store& store, const wire::RequestBody& body, std::uint16_t code,
                    const std::string& reply);

  void arrive(Guest& guest, const GuestRequest& request);
  void wait(Guest& guest, const std::vector<std::string>& keys);
  void release(Store& store, const std::string& key);
  /// Returns whether that was all it waited for.
  bool comes(Wait& wait);
  void give_up(Guest& guest);
  void list(Guest& guest);
  void check_listing(Guest& guest);
  void note_presence(const Store& store, const std::string& key, bool is_there);
  void touch(Guest& guest) { touched_.insert(guest.id); }
  void owe(Guest& guest, const std::string& bytes);
  void note(const Guest& guest, const std::string& what);
  void problem(const Guest& guest, const std::string& what);

  Oracle& oracle_;
  Trace& trace_;
  const Terms terms_;
  std::map<std::string, Store> stores_;
  std::map<Connection, Guest> guests_;
  std::set<Connection> touched_;
  std::set<Connection> gone_;
  std::uint64_t requests_count_ = 0;
  std::uint64_t last_wait_ = 0;
  std::uint64_t last_offer_ = 0;
  Instant now_{};
};

}  // namespace muster::sim
