#include "core/keys/taken.h"

#include "core/keys/table_state.h"
#include "core/keys/value_answers.h"

namespace muster::core {
namespace {

std::shared_ptr<BoundKeys> bound_with(const Entry& entry) {
  const KeyExtras* const extras = entry.block.extras();
  const bool is_bound = extras != nullptr && extras->bound != nullptr;
  return is_bound ? extras->bound->shared_from_this() : nullptr;
}

}  // namespace

TakenKey::TakenKey(TableState& table, Account& payer, const Entry& entry)
    : table_(table),
      payer_(payer),
      key_(entry.key()),
      deadline_(entry.deadline),
      bound_(bound_with(entry)) {
  // A key that is taken again has been set again, so that an earlier one is here no more.
  is_noted_ = table_.taken_keys.emplace(key_, this).second;
  payer_.quota.charge_always(taken_record_bytes + key_.size());
}

TakenKey::~TakenKey() {
  if (is_noted_) table_.taken_keys.erase(key_);
  payer_.quota.release(taken_record_bytes + key_.size());
}

void TakenKey::note_set_again() {
  table_.taken_keys.erase(key_);
  is_noted_ = false;
}

bool TakenKey::give_back(const Payload& value) {
  if (!is_noted_) return false;
  const bool is_over = deadline_ <= table_.services.now() || (bound_ && bound_->are_gone);
  if (is_over) return true;  // it would not be there any more
  const std::string_view text = value == nullptr ? std::string_view() : value->view();
  const NewValue stored =
      text.size() < shared_value_bytes_min ? NewValue{text, {}, nullptr} : NewValue{{}, {}, value};
  const auto binding = bound_ ? TableState::Binding::room : TableState::Binding::none;
  Draft draft(table_);
  if (!table_.prepare(draft, payer_, table_.look(key_), stored, binding, Charging::always)) {
    return false;
  }
  note_set_again();
  Entry* const entry = &draft.entry();
  table_.put(draft);
  table_.deadlines.set(*entry, deadline_);
  table_.bind(*entry, bound_.get());
  table_.serving.serve({&entry, 1});
  return true;
}

TakenItem::TakenItem(TableState& table, Account& payer, std::string_view key)
    : table_(table), payer_(payer), key_(key) {
  payer_.quota.charge_always(taken_record_bytes + key_.size());
}

TakenItem::~TakenItem() { payer_.quota.release(taken_record_bytes + key_.size()); }

bool TakenItem::give_back(const Payload& item) {
  Entry* const entry = table_.make_place(payer_, key_, Charging::always);
  if (entry == nullptr) return false;
  table_.queues.put_back(*entry, number_, item);
  table_.serving.serve_queue(*entry);
  return true;
}

Answer take_answer(TableState& table, Account& payer, const Entry& entry) {
  Answer answer = value_answer(entry);
  answer.taken = std::make_unique<TakenKey>(table, payer, entry);
  return answer;
}

Answer pop_answer(TableState& table, Account& payer, Entry& entry) {
  auto taken = std::make_unique<TakenItem>(table, payer, entry.key());
  auto [item, number] = table.queues.pop(entry);
  taken->set_number(number);
  Answer answer = value_answer(item);
  answer.taken = std::move(taken);
  return answer;
}

}  // namespace muster::core
