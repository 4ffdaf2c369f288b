// What other threads send to a loop that may have been destroyed.
//
// A sender shares the loop's mailbox, and does not refer to the loop. The loop closes the mailbox
// when it is destroyed. Sending allocates nothing and cannot fail for any other reason.
#pragma once

#include <cerrno>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include <tambour/base/result.h>
#include <tambour/detail/intrusive_list.h>

#include "base/failure.h"
#include "base/process_number.h"
#include "loop/core.h"

namespace tambour::detail::threads {

/// `T` has the hook `InMailbox`, whose tag is `Tag`, and the flag `refused_`, which the lock of the
/// mailbox guards. Owns none of the items.
template <class T, class Tag>
class Mailbox {
 public:
  // No base of `Tag`, which only names a hook. NOLINTBEGIN(bugprone-crtp-constructor-accessibility)
  explicit Mailbox(loop::Core& core) noexcept : core_(&core) {}
  Mailbox(const Mailbox&) = delete;
  // NOLINTEND(bugprone-crtp-constructor-accessibility)
  Mailbox& operator=(const Mailbox&) = delete;

  /// Callable from any thread. Returns false if the loop was destroyed or refuses the item, which
  /// then stays with the caller. Otherwise the item must not be used after this call.
  [[nodiscard]] bool put(T& item) noexcept {
    if (is_of_parent()) return false;
    const std::lock_guard lock(mutex_);
    if (core_ == nullptr || item.refused_) return false;
    arrived_.push_back(item);
    // Under the lock, so that the loop still exists.
    core_->async_sent();
    return true;
  }

  /// Guards the state that senders share with the loop.
  [[nodiscard]] std::mutex& mutex() noexcept { return mutex_; }

  /// True in a child after fork(2): the lock may be held by a thread that does not exist there, so
  /// only put() and refuse() may be called.
  [[nodiscard]] bool is_of_parent() const noexcept { return !process_.is_current(); }

  // The functions below are called by the loop.

  /// Returns the first item that has arrived, or null.
  [[nodiscard]] T* take() noexcept {
    const std::lock_guard lock(mutex_);
    T* const item = arrived_.front();
    if (item != nullptr) item->T::InMailbox::unlink();
    return item;
  }

  /// A later put() of this item fails. Returns true if it had arrived: the caller then owns it.
  [[nodiscard]] bool refuse(T& item) noexcept {
    if (is_of_parent()) return false;
    const std::lock_guard lock(mutex_);
    item.refused_ = true;
    const bool has_arrived = item.T::InMailbox::linked();
    item.T::InMailbox::unlink();
    return has_arrived;
  }

  /// A later put() of any item fails.
  void close() noexcept {
    const std::lock_guard lock(mutex_);
    core_ = nullptr;
  }

 private:
  std::mutex mutex_;
  loop::Core* core_;  ///< Null: the loop is destroyed.
  base::OwningProcess process_;
  detail::IntrusiveList<T, Tag> arrived_;
};

/// In a child after fork(2): replaces a mailbox of the parent. Fails with ENOMEM.
template <class SomeMailbox>
[[nodiscard]] Result<> replace_mailbox(std::shared_ptr<SomeMailbox>& mailbox,
                                       loop::Core& core) noexcept {
  try {
    auto fresh = std::make_shared<SomeMailbox>(core);
    // The former mailbox may have been locked during the fork: leak it, so that it is never used
    // again.
    static_cast<void>(new std::shared_ptr<SomeMailbox>(mailbox));
    mailbox = std::move(fresh);
  } catch (const std::bad_alloc&) {
    return base::failure(ENOMEM);
  }
  return {};
}

}  // namespace tambour::detail::threads
