#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/session/accounts.h"
#include "core/session/answers.h"
#include "core/session/clock.h"

// What takes and pops have removed, until their answers are acknowledged. In this time it is absent
// for all others, and can be given back.

namespace muster::core {

struct BoundKeys;
struct Entry;
struct TableState;

/// The key of a take. It is given back as it was, unless it has been set again since.
class TakenKey final : public Taken {
 public:
  TakenKey(TableState& table, Account& payer, const Entry& entry);
  ~TakenKey() override;

  bool give_back(const Payload& value) override;
  void note_set_again();

 private:
  TableState& table_;
  Account& payer_;
  const std::string key_;
  const Instant deadline_;
  const std::shared_ptr<BoundKeys> bound_;  ///< with which it would go; null: none
  bool is_noted_ = false;                   ///< among the table's, so that it learns of a new value
};

/// The item of a pop. It is given back to its place, before all that were pushed after it.
class TakenItem final : public Taken {
 public:
  TakenItem(TableState& table, Account& payer, std::string_view key);
  ~TakenItem() override;

  /// When it is popped, see `Queues::pop`.
  void set_number(std::uint64_t number) { number_ = number; }
  bool give_back(const Payload& item) override;

 private:
  TableState& table_;
  Account& payer_;
  const std::string key_;
  std::uint64_t number_ = 0;
};

/// The memory of one of them without its key, with its place in the table.
inline constexpr std::uint64_t taken_record_bytes = sizeof(TakenKey) + 80;

/// The answer of a take. The key still has its value, which is to be removed next.
Answer take_answer(TableState& table, Account& payer, const Entry& entry);
/// The answer of a pop, with the first item of the queue, which it removes: the entry may go.
Answer pop_answer(TableState& table, Account& payer, Entry& entry);

}  // namespace muster::core
