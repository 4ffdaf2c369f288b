// What the loop runs, and what a backend completes.
//
// These are the intrusive bases of the public handles. Programs do not use them directly; they
// stand here because a handle, which embeds them, has to have a size.
#pragma once

#include <cstdint>
#include <source_location>
#include <utility>

#include <tambour/callback.h>
#include <tambour/events.h>

namespace tambour {

/// A link of a circular, doubly linked list; alone, it points nowhere. Moving a link puts the new
/// one in the old one's place. Nothing is owned and nothing is allocated.
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

/// The head of such a list: a link that is never taken out. Links that are still there when it is
/// destroyed are alone from then on.
class LinkList final : private Link {
 public:
  LinkList() noexcept { next_ = previous_ = this; }
  LinkList(const LinkList&) = delete;
  LinkList& operator=(const LinkList&) = delete;
  ~LinkList() {
    while (Link* link = first()) link->unlink();
    next_ = nullptr;
  }

  /// Null: there is none.
  [[nodiscard]] Link* first() const noexcept { return after(*this); }
  [[nodiscard]] Link* after(const Link& link) const noexcept {
    Link* const next = link.next_;
    return next == this ? nullptr : next;
  }
  /// The link is in no list.
  void push_back(Link& link) noexcept { link.put_between(*previous_, *this); }
};

/// A place in a list of `Item`s that begins in a pointer to the first, one word a list, and ends in
/// null. Its item inherits from it; `Which` tells the places apart of one that is in several lists
/// at a time. Whoever has the list takes out what is destroyed.
template <class Item, class Which = void>
class Listed {
 public:
  Listed& operator=(Listed&&) = delete;

  [[nodiscard]] bool listed() const noexcept { return link_ != nullptr; }
  /// Null: it is the last.
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
  Item** link_ = nullptr;  ///< What points at the item; null while it is in no list.
};

/// Something on the heap that belongs to a loop, or to an object of one, until it has ended.
class LoopOwned : public Closure, public Link {};

/// Of what is due in one turn, a higher priority runs first. Everything starts with 0.
inline constexpr int priority_min = -2;
inline constexpr int priority_max = 2;

/// Something that waits for its callback to be run in this turn of the loop.
class Ready : public Link {
 public:
  using Run = void (*)(Ready&);
  /// `created_at` is what a stall detector names; a public handle passes its caller's.
  explicit Ready(Run run,
                 std::source_location created_at = std::source_location::current()) noexcept
      : run_(run), created_at_(created_at) {}

  [[nodiscard]] std::source_location created_at() const noexcept { return created_at_; }

  [[nodiscard]] int priority() const noexcept { return priority_max - urgency_; }

  /// Out of range is clamped. What is queued already keeps its place.
  void set_priority(int priority) noexcept {
    if (priority < priority_min) priority = priority_min;
    if (priority > priority_max) priority = priority_max;
    urgency_ = static_cast<std::uint8_t>(priority_max - priority);
  }

  /// From now on, what would be queued is run there and then, in the middle of a wait. For what
  /// only notes that it is due, in a queue of its own: it calls nobody back, and submits, cancels
  /// and destroys nothing.
  void run_at_once() noexcept { urgency_ = at_once; }

 private:
  friend class ReadyQueue;
  static constexpr std::uint8_t at_once = 0xff;  ///< As an urgency.
  Run run_;
  std::source_location created_at_;
  std::uint8_t urgency_ = priority_max;  ///< 0 is the highest priority.
};

enum class OperationKind : std::uint8_t {
  poll,           ///< Readiness of a descriptor, reported until it is cancelled.
  file_open,      ///< These are FileOperations (src/op): openat(2),
  file_read,      ///< pread(2),
  file_write,     ///< pwrite(2),
  file_sync,      ///< fsync(2),
  file_size,      ///< fstat(2),
  file_truncate,  ///< ftruncate(2).
};

/// Something that takes time. The caller owns it, and does not touch its parameters from submit to
/// completion.
///
/// A `poll` operation differs from all other kinds in one way: the kernel borrows nothing from it,
/// so it may complete any number of times, and `cancel` ends it at once, without a last completion.
class Operation : public Ready {
 public:
  Operation(OperationKind operation_kind, Run run,
            std::source_location created_at = std::source_location::current()) noexcept
      : Ready(run, created_at), kind(operation_kind) {}

  Operation(Operation&& other) noexcept
      : Ready(static_cast<Ready&&>(other)),  // Only the base: the rest is read below.
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
  Events events = Events::none;  ///< poll: what is asked for.
  int fd = -1;
  std::int32_t result = 0;  ///< poll: the Events that came. Negative: an errno value, negated.

  /// The other operations on the same descriptor; a list that starts in the backend's record of it.
  /// `link_on_fd` points at whatever points at this operation, null while not submitted.
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
