#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/events.h"
#include "core/name_space.h"
#include "muster/error.h"
#include "muster/types.h"

namespace muster::core {

/// Namespaces that nobody finds any more. What is left of them is freed in pieces.
class DroppedNameSpaces final : public Backlog::Job {
 public:
  DroppedNameSpaces(EffectList& effects, Units& units) : effects_(effects), units_(units) {}

  void add(std::unique_ptr<NameSpace> name_space);
  int work(int work_max) override;
  /// Looks at so many of those of which only replies that are on their way have something.
  void sweep(std::size_t count);
  void clear();

 private:
  EffectList& effects_;
  Units& units_;
  std::deque<std::unique_ptr<NameSpace>> with_keys_;
  std::deque<std::unique_ptr<NameSpace>> without_keys_;
};

/// All namespaces, and the units that have something in them. A namespace is made with its first
/// session, and goes when no session is left and nothing is in it.
class NameSpaces {
 public:
  explicit NameSpaces(EngineServices& services)
      : services_(services), units_(services.memory().all), history_(services) {}
  NameSpaces(const NameSpaces&) = delete;
  NameSpaces& operator=(const NameSpaces&) = delete;

  Units& units() { return units_; }
  /// Of the groups of all namespaces, also of those that are over.
  const History& history() const { return history_; }

  /// Null: there is none.
  NameSpace* find(std::string_view name) const;
  /// The first one, or with a name the one behind it, by their names. Null: there is none.
  const NameSpace* after(const std::optional<std::string_view>& name) const;
  /// The one in which a session would begin by that hello. One that is kept without sessions is
  /// dropped if its idle lifetime is over, or if the hello is that of another run.
  NameSpace* find_for(const wire::ClientHello& hello);
  /// Why the session cannot begin there: `busy` (not yet) or `closed`.
  std::optional<Error> refusal_to_enter(NameSpace& name_space, const Hello& event);
  /// The session has begun there.
  static void entered(NameSpace& name_space, const Hello& event);
  /// Why `unit` cannot make one more.
  std::optional<Error> refusal_to_make(const std::string& name, const Unit& unit);
  NameSpace& make(const std::string& name, Unit& unit);

  /// From now on each has so much.
  void change_memory_limit(std::uint64_t bytes_max);

  /// A session of the account has gone.
  void session_gone(NameSpace& name_space, Account& account);
  /// Looks at some of what nobody may need any more: namespaces and accounts without sessions.
  void sweep();

  /// Removes the namespace, which has no sessions, with its keys.
  ///
  /// returns  how many those are
  std::uint64_t drop(NameSpace& name_space);

  /// A guest whose connection was closed since its request was refused.
  struct RefusedGuest {
    std::string name_space;
    Instant when{};
    std::string why;
  };
  void note_refused(const std::string& name_space, std::string_view why);
  /// The last ones of all namespaces, the oldest first.
  const std::deque<RefusedGuest>& refused_guests() const { return refused_guests_; }

  /// Where requests are parked.
  WaitingNames& waiting_names() { return waiting_names_; }
  std::size_t size() const { return name_spaces_.size(); }
  void clear();

 private:
  using Map = std::map<std::string, std::unique_ptr<NameSpace>, std::less<>>;

  /// A process that waits for the end of a run, and is refused as `busy`.
  struct Newcomer {
    Instant since{};
    Instant refused{};  ///< last
  };

  void sweep_accounts();
  bool is_past(const Newcomer& newcomer) const;
  /// For how long the process has been waiting to enter the namespace. It is refused again.
  Duration waited(const wire::ClientHello& hello);

  EngineServices& services_;
  WaitingNames waiting_names_;
  Units units_;
  History history_;
  Map name_spaces_;
  /// By namespace and process.
  std::map<std::pair<std::string, ProcessId>, Newcomer> newcomers_;
  Instant newcomers_swept_{};
  std::deque<RefusedGuest> refused_guests_;
  std::string swept_;      ///< the name of the one whose accounts were looked at last
  Chain<NameSpace> idle_;  ///< without sessions when they came here
  DroppedNameSpaces dropped_{services_.effects(), units_};
};

}  // namespace muster::core
