#include "core/keys/decision.h"

#include "core/keys/table_state.h"
#include "core/keys/value_answers.h"
#include "wire/operation_table.h"

namespace muster::core {

void Decision::add(std::unique_ptr<Readers> readers, Entry* source) {
  readers->entry = nullptr;
  queues_.push_back({std::move(readers), source});
  if (queues_.size() == 1) return;
  for (std::size_t index = queues_.size() == 2 ? 0 : queues_.size() - 1; index < queues_.size();
       ++index) {
    turns_.emplace(queues_[index].readers->waits.first().wait->number, index);
  }
}

std::size_t Decision::count() const {
  std::size_t count = 0;
  for (const Queue& queue : queues_) count += queue.readers->count;
  return count;
}

void Decision::keep_values(TableState& table) {
  for (Queue& queue : queues_) {
    if (queue.source != nullptr) queue.readers->value = table.shared_value(*queue.source);
    queue.source = nullptr;
  }
}

KeyWait* Decision::next() {
  if (queues_.size() == 1) {
    const Readers& readers = *queues_.front().readers;
    return readers.waits.empty() ? nullptr : readers.waits.first().wait;
  }
  while (!turns_.empty()) {
    const auto [number, index] = turns_.top();
    const Readers& readers = *queues_[index].readers;
    KeyWait* const first = readers.waits.empty() ? nullptr : readers.waits.first().wait;
    turn_ = index;
    if (first != nullptr && first->number == number) return first;
    turns_.pop();
    if (first != nullptr) turns_.emplace(first->number, index);
  }
  return nullptr;
}

Answer Decision::answer(const KeyWait& wait) const {
  const Queue& queue = queues_[turn_];
  if (queue.source == nullptr) return wait.decided_answer();
  return wait.parked.operation == wire::operation<wire::Get> ? value_answer(*queue.source)
                                                             : Answer{};
}

void LateAnswers::add(Decision decision) {
  decisions_.push_back(std::move(decision));
  services_.effects().backlog().add(*this);
}

int LateAnswers::work(int work_max) {
  int done = 0;
  for (; done < work_max && !decisions_.empty(); ++done) {
    Decision& decision = decisions_.front();
    if (KeyWait* const wait = decision.next()) {
      services_.answer(wait->parked, decision.answer(*wait));
    } else {
      decisions_.pop_front();
    }
  }
  return done;
}

}  // namespace muster::core
