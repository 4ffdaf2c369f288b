// The base classes of watchers, timers and operations: what a loop runs and what a backend
// completes.
//
// They are intrusive bases of the public handles. Programs do not use them directly; they are
// public only because a handle embeds them and must have a known size.
#pragma once

#include <cstdint>
#include <source_location>
#include <utility>

#include <tambour/callback.h>
#include <tambour/events.h>

namespace tambour {

/// A link of a circular, doubly linked list. A link that is in no list has null pointers. Moving a
/// link puts the new one in the old one's position. Owns and allocates nothing.
class Link {
 public:
  Link() = default;
  Link(Link&& other) noexcept { take_place_of(other); }
  Link& operator=(Link&& other) noexcept {
    if (this != &other) {
      unlink();
      take_place_of(other);
    }
    return *this;
  }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  ~Link() { unlink(); }

  [[nodiscard]] bool linked() const noexcept { return next_ != nullptr; }

  void unlink() noexcept {
    if (next_ == nullptr) return;
    remove();
  }

 protected:
  friend class LinkList;
  friend class ReadyQueue;

  void remove() noexcept {
    next_->previous_ = previous_;
    previous_->next_ = next_;
    next_ = nullptr;
  }

  void put_between(Link& previous, Link& next) noexcept {
    previous_ = &previous;
    next_ = &next;
    previous.next_ = this;
    next.previous_ = this;
  }

  void take_place_of(Link& other) noexcept {
    if (other.next_ == nullptr) return;
    next_ = other.next_;
    previous_ = other.previous_;
    next_->previous_ = this;
    previous_->next_ = this;
    other.next_ = nullptr;
  }

  Link* next_ = nullptr;
  Link* previous_ = nullptr;
};

/// The head of a list: a link that is never removed. Destroying it unlinks the remaining links.
class LinkList final : private Link {
 public:
  LinkList() noexcept { next_ = previous_ = this; }
  LinkList(const LinkList&) = delete;
  LinkList& operator=(const LinkList&) = delete;
  ~LinkList() {
    while (Link* link = first()) link->unlink();
    next_ = nullptr;
  }

  /// Null if the list is empty.
  [[nodiscard]] Link* first() const noexcept { return after(*this); }
  [[nodiscard]] Link* after(const Link& link) const noexcept {
    Link* const next = link.next_;
    return next == this ? nullptr : next;
  }
  /// The link must not be in a list.
  void push_back(Link& link) noexcept { link.put_between(*previous_, *this); }
};

/// An intrusive node of a null-terminated list of `Item`s, whose head is a single pointer to the
/// first item. The item inherits from it. `Which` distinguishes the nodes of an item that is in
/// several lists at a time. The owner of the list removes items before they are destroyed.
template <class Item, class Which = void>
class Listed {
 public:
  Listed& operator=(Listed&&) = delete;

  [[nodiscard]] bool listed() const noexcept { return link_ != nullptr; }
  /// Null if it is the last.
  [[nodiscard]] Item* next() const noexcept { return next_; }

  void put_first(Item*& first) noexcept {
    next_ = first;
    link_ = &first;
    if (first != nullptr) place_of(*first).link_ = &next_;
    first = static_cast<Item*>(this);
  }

  void take_out() noexcept {
    *link_ = next_;
    if (next_ != nullptr) place_of(*next_).link_ = link_;
    next_ = nullptr;
    link_ = nullptr;
  }

  void take_place_of(Listed& other) noexcept {
    if (!other.listed()) return;
    next_ = std::exchange(other.next_, nullptr);
    link_ = std::exchange(other.link_, nullptr);
    *link_ = static_cast<Item*>(this);
    if (next_ != nullptr) place_of(*next_).link_ = &next_;
  }

 private:
  friend Item;
  Listed() = default;
  Listed(Listed&& other) noexcept { take_place_of(other); }
  ~Listed() = default;

  static Listed& place_of(Item& item) noexcept { return item; }

  Item* next_ = nullptr;
  /// The pointer that refers to the item; null while the item is in no list.
  Item** link_ = nullptr;
};

/// A heap object that is owned by a loop, or by an object of a loop, until it has ended.
class LoopOwned : public Closure, public Link {};

/// Among the callbacks that are due in one iteration, those of higher priority run first. The
/// default is 0.
inline constexpr int priority_min = -2;
inline constexpr int priority_max = 2;

/// An item whose callback is to be run in this iteration of the loop.
class Ready : public Link {
 public:
  using Run = void (*)(Ready&);
  /// `created_at` is reported by the stall detector; a public handle passes the location of its
  /// caller.
  explicit Ready(Run run,
                 std::source_location created_at = std::source_location::current()) noexcept
      : run_(run), created_at_(created_at) {}

  [[nodiscard]] std::source_location created_at() const noexcept { return created_at_; }

  [[nodiscard]] int priority() const noexcept { return priority_max - urgency_; }

  /// Values out of range are clamped. An item that is already queued keeps its position.
  void set_priority(int priority) noexcept {
    if (priority < priority_min) priority = priority_min;
    if (priority > priority_max) priority = priority_max;
    urgency_ = static_cast<std::uint8_t>(priority_max - priority);
  }

  /// Makes the item run immediately, during the wait, instead of being queued. For items that only
  /// record in a queue of their own that they are due: such an item must not invoke callbacks, nor
  /// submit, cancel or destroy operations.
  void run_at_once() noexcept { urgency_ = at_once; }

 private:
  friend class ReadyQueue;
  static constexpr std::uint8_t at_once = 0xff;  ///< A value of urgency_.
  Run run_;
  std::source_location created_at_;
  std::uint8_t urgency_ = priority_max;  ///< 0 is the highest priority.
};

enum class OperationKind : std::uint8_t {
  poll,           ///< Readiness of a file descriptor, reported until cancelled.
  file_open,      ///< openat(2). This and the following are FileOperations (src/op).
  file_read,      ///< pread(2).
  file_write,     ///< pwrite(2).
  file_sync,      ///< fsync(2).
  file_size,      ///< fstat(2).
  file_truncate,  ///< ftruncate(2).
};

/// An asynchronous operation. The caller owns it and must not access its parameters between
/// submission and completion.
///
/// A `poll` operation differs from all other kinds: the kernel borrows no memory from it, so it may
/// complete any number of times, and `cancel` ends it at once, without a final completion.
class Operation : public Ready {
 public:
  Operation(OperationKind operation_kind, Run run,
            std::source_location created_at = std::source_location::current()) noexcept
      : Ready(run, created_at), kind(operation_kind) {}

  Operation(Operation&& other) noexcept
      : Ready(static_cast<Ready&&>(other)),  // Moves only the base; the rest is read below.
        kind(other.kind),
        trigger(other.trigger),
        events(other.events),
        fd(other.fd),
        result(other.result) {
    take_place_on_fd(other);
  }
  Operation& operator=(Operation&&) = delete;

  OperationKind kind;
  Trigger trigger = Trigger::level;
  Events events = Events::none;  ///< poll: the requested events.
  int fd = -1;
  std::int32_t result = 0;  ///< poll: the reported events, or a negated errno value.

  /// List of the operations on the same file descriptor, whose head is in the backend's record of
  /// it. `link_on_fd` refers to the pointer to this operation, and is null while it is not
  /// submitted.
  Operation* next_on_fd = nullptr;
  Operation** link_on_fd = nullptr;

 private:
  void take_place_on_fd(Operation& other) noexcept {
    if (other.link_on_fd == nullptr) return;
    next_on_fd = other.next_on_fd;
    link_on_fd = other.link_on_fd;
    *link_on_fd = this;
    if (next_on_fd != nullptr) next_on_fd->link_on_fd = &next_on_fd;
    other.link_on_fd = nullptr;
    other.next_on_fd = nullptr;
  }
};

}  // namespace tambour
