#pragma once

#include <iterator>

namespace muster::core {

template <class Owner>
class Chain;

/// One object's place in a chain, a member of that object. Leaves the chain when destroyed, so
/// that nothing has to be searched for when its owner goes.
template <class Owner>
class ChainLink {
 public:
  explicit ChainLink(Owner& owner) : owner_(&owner) {}
  ~ChainLink() { leave(); }
  ChainLink(const ChainLink&) = delete;
  ChainLink& operator=(const ChainLink&) = delete;

  bool linked() const { return next_ != this; }
  void leave() {
    previous_->next_ = next_;
    next_->previous_ = previous_;
    previous_ = next_ = this;
  }

 private:
  friend class Chain<Owner>;
  ChainLink() = default;  // a chain's head

  Owner* owner_ = nullptr;
  ChainLink* previous_ = this;
  ChainLink* next_ = this;
};

/// Objects in the order in which they came; owns none of them.
template <class Owner>
class Chain {
 public:
  class iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = Owner;
    using difference_type = std::ptrdiff_t;
    using pointer = Owner*;
    using reference = Owner&;

    explicit iterator(const ChainLink<Owner>* link = nullptr) : link_(link) {}
    Owner& operator*() const { return *link_->owner_; }
    Owner* operator->() const { return link_->owner_; }
    iterator& operator++() {
      link_ = link_->next_;
      return *this;
    }
    iterator operator++(int) {
      const iterator before = *this;
      ++*this;
      return before;
    }
    friend bool operator==(const iterator&, const iterator&) = default;

   private:
    const ChainLink<Owner>* link_;
  };

  Chain() = default;
  ~Chain() {
    while (!empty()) head_.next_->leave();
  }
  Chain(const Chain&) = delete;
  Chain& operator=(const Chain&) = delete;

  bool empty() const { return !head_.linked(); }
  Owner& first() const { return *head_.next_->owner_; }
  Owner& last() const { return *head_.previous_->owner_; }

  void append(ChainLink<Owner>& link) {
    link.leave();
    link.previous_ = head_.previous_;
    link.next_ = &head_;
    head_.previous_->next_ = &link;
    head_.previous_ = &link;
  }
  void prepend(ChainLink<Owner>& link) {
    link.leave();
    link.previous_ = &head_;
    link.next_ = head_.next_;
    head_.next_->previous_ = &link;
    head_.next_ = &link;
  }
  /// Takes over what `other` has, in its order.
  void append_all(Chain& other) {
    while (!other.empty()) append(*other.head_.next_);
  }

  /// The object that is iterated over may leave only after the iterator has moved on.
  iterator begin() const { return iterator(head_.next_); }
  iterator end() const { return iterator(&head_); }

 private:
  ChainLink<Owner> head_;
};

}  // namespace muster::core
