// Intrusive lists: the items contain the links, so adding and removing an item allocates nothing.
//
// An item derives from one hook per list that it can be in at a time; `Tag` distinguishes them.
// Lists own nothing. Not part of the public interface.
#pragma once

#include <type_traits>
#include <utility>

namespace tambour::detail::base {
class ReadyQueue;
class TimingWheel;
}  // namespace tambour::detail::base

#pragma GCC visibility push(default)

namespace tambour::detail {

template <class T, class Tag>
class IntrusiveList;

/// The links of an item of an IntrusiveList. A hook that is in no list has null pointers. Moving a
/// hook puts the new one in the old one's position; destroying it removes it from its list.
template <class Tag>
class ListHook {
 public:
  // NOLINTBEGIN(bugprone-crtp-constructor-accessibility): the tag need not be the derived class.
  ListHook() = default;
  ListHook(ListHook&& other) noexcept { replace(other); }
  ListHook& operator=(ListHook&& other) noexcept {
    if (this != &other) {
      unlink();
      replace(other);
    }
    return *this;
  }
  ListHook(const ListHook&) = delete;
  ListHook& operator=(const ListHook&) = delete;
  ~ListHook() { unlink(); }
  // NOLINTEND(bugprone-crtp-constructor-accessibility)

  [[nodiscard]] bool linked() const noexcept { return next_ != nullptr; }

  void unlink() noexcept {
    if (next_ == nullptr) return;
    remove();
  }

 protected:
  template <class, class>
  friend class IntrusiveList;
  friend class base::ReadyQueue;
  friend class base::TimingWheel;

  void remove() noexcept {
    next_->previous_ = previous_;
    previous_->next_ = next_;
    next_ = nullptr;
  }

  void insert_between(ListHook& previous, ListHook& next) noexcept {
    previous_ = &previous;
    next_ = &next;
    previous.next_ = this;
    next.previous_ = this;
  }

  void replace(ListHook& other) noexcept {
    if (other.next_ == nullptr) return;
    next_ = other.next_;
    previous_ = other.previous_;
    next_->previous_ = this;
    previous_->next_ = this;
    other.next_ = nullptr;
  }

  ListHook* next_ = nullptr;
  ListHook* previous_ = nullptr;
};

/// A circular, doubly linked list of items that derive from ListHook<Tag>; the head is a hook that
/// is never removed. Destroying the list unlinks the remaining items.
template <class T, class Tag = T>
class IntrusiveList final : private ListHook<Tag> {
  using Hook = ListHook<Tag>;

 public:
  IntrusiveList() noexcept { this->next_ = this->previous_ = this; }
  IntrusiveList(const IntrusiveList&) = delete;
  IntrusiveList& operator=(const IntrusiveList&) = delete;
  ~IntrusiveList() {
    while (!empty()) this->next_->remove();
    this->next_ = nullptr;
  }

  [[nodiscard]] bool empty() const noexcept { return this->next_ == this; }
  /// Null if the list is empty.
  [[nodiscard]] T* front() const noexcept { return item(this->next_); }
  /// Null after the last item.
  [[nodiscard]] T* after(const T& previous) const noexcept {
    return item(hook_of(const_cast<T&>(previous)).next_);
  }
  /// The item must not be in a list of this tag.
  void push_back(T& added) noexcept { hook_of(added).insert_between(*this->previous_, *this); }

 private:
  // Unlike static_cast, this notation converts to a private base class, and from one. So the items
  // need not name the list as a friend.
  // NOLINTBEGIN(google-readability-casting)
  static Hook& hook_of(T& item) noexcept {
    static_assert(std::is_base_of_v<Hook, T>);  // And T is complete.
    return (Hook&)item;
  }
  [[nodiscard]] T* item(Hook* hook) const noexcept {
    static_assert(std::is_base_of_v<Hook, T>);
    return hook == this ? nullptr : (T*)hook;
  }
  // NOLINTEND(google-readability-casting)
};

template <class T, class Tag>
class Hlist;

/// The links of an item of an Hlist. The owner of the list removes items before they are destroyed;
/// moving a hook puts the new one in the old one's position.
template <class T, class Tag = T>
class HlistHook {
 public:
  HlistHook& operator=(HlistHook&&) = delete;

  [[nodiscard]] bool listed() const noexcept { return link_ != nullptr; }
  /// Null if the item is the last.
  [[nodiscard]] T* next() const noexcept { return next_; }

  /// The item must be in a list.
  void unlist() noexcept {
    *link_ = next_;
    if (next_ != nullptr) hook_of(*next_).link_ = link_;
    next_ = nullptr;
    link_ = nullptr;
  }

  void replace(HlistHook& other) noexcept {
    if (!other.listed()) return;
    next_ = std::exchange(other.next_, nullptr);
    link_ = std::exchange(other.link_, nullptr);
    static_assert(std::is_base_of_v<HlistHook, T>);
    *link_ = (T*)this;  // NOLINT(google-readability-casting): see hook_of().
    if (next_ != nullptr) hook_of(*next_).link_ = &next_;
  }

 protected:
  // NOLINTBEGIN(bugprone-crtp-constructor-accessibility): a base of the item constructs the hook.
  HlistHook() = default;
  HlistHook(HlistHook&& other) noexcept { replace(other); }
  // NOLINTEND(bugprone-crtp-constructor-accessibility)
  ~HlistHook() = default;

 private:
  friend class Hlist<T, Tag>;

  /// See IntrusiveList about the notation.
  static HlistHook& hook_of(T& item) noexcept {
    static_assert(std::is_base_of_v<HlistHook, T>);  // And T is complete.
    return (HlistHook&)item;                         // NOLINT(google-readability-casting)
  }

  T* next_ = nullptr;
  /// The pointer that refers to the item; null while the item is in no list.
  T** link_ = nullptr;
};

/// A doubly linked list whose head is a single pointer, for tables of many lists: hlist_head of
/// Linux, LIST of queue(3). An item is added at the front only.
template <class T, class Tag = T>
class Hlist {
  using Hook = HlistHook<T, Tag>;

 public:
  Hlist() = default;
  Hlist(Hlist&& other) noexcept : first_(std::exchange(other.first_, nullptr)) {
    if (first_ != nullptr) Hook::hook_of(*first_).link_ = &first_;
  }
  Hlist& operator=(Hlist&&) = delete;
  ~Hlist() = default;

  [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
  /// Null if the list is empty.
  [[nodiscard]] T* front() const noexcept { return first_; }
  [[nodiscard]] static T* after(const T& item) noexcept {
    return Hook::hook_of(const_cast<T&>(item)).next_;
  }

  /// The item must not be in a list of this tag.
  void push_front(T& item) noexcept {
    Hook& hook = Hook::hook_of(item);
    hook.next_ = first_;
    hook.link_ = &first_;
    if (first_ != nullptr) Hook::hook_of(*first_).link_ = &hook.next_;
    first_ = &item;
  }

  /// Makes the list empty and leaves the hooks of its items as they are: they must be added to a
  /// list again, or not be used.
  void abandon() noexcept { first_ = nullptr; }

 private:
  T* first_ = nullptr;
};

}  // namespace tambour::detail

#pragma GCC visibility pop
