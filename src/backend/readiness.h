// A backend built from a system call that reports readiness: epoll, poll or select.
//
// A Poller wraps the system call:
//
//   static constexpr BackendTraits traits;
//   static constexpr bool kernel_keeps_registrations;
//   static constexpr int fd_end;                one more than the highest supported descriptor
//   int open() noexcept;                        0, or an errno value
//   int set(const Change& change) noexcept;     0, `kept`, or an errno value
//   void wait(std::int64_t timeout_ns, Sink&& sink) noexcept;
//   int reopen() noexcept;                      as open(), with nothing registered
//   int fd() const noexcept;                    optional: readable when wait() would report
//   void disown() noexcept;                     optional: gives up its descriptor, see Backend
//   int add_wait_timer(int fd, std::uint32_t generation) noexcept;
//                                               optional: registers the timerfd of a WaitTimer
//
// It calls sink(fd, events, generation) for each ready descriptor, and sink.fail(fd, error) for
// each descriptor that turns out to be closed.
#pragma once

#include <algorithm>
#include <cerrno>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/fd_records.h"
#include "backend/io_uring/file_ring.h"
#include "backend/mirror/mirror_set.h"
#include "backend/wait_timer.h"
#include "backend/wake_up.h"
#include "base/failure.h"
#include "base/probe.h"

namespace tambour::detail::backend {

/// A change to the registration of one descriptor.
struct Change {
  int fd;
  Interest old;              ///< What is registered now.
  Interest now;              ///< Events::none: remove the registration.
  bool unverified;           ///< The descriptor may refer to another file now.
  bool likely;               ///< If `unsure`: it most likely does not.
  std::uint32_t generation;  ///< Of the new registration; reported with its events.
  bool& left_behind;         ///< State that epoll keeps, see FdRecord.
};

/// Returned by set() if the registration already exists as requested, with its previous generation.
inline constexpr int kept = -1;

template <class Poller>
class Readiness final : public Backend {
 public:
  static Result<std::unique_ptr<Backend>> open(const LoopOptions& options) {
    auto self = std::unique_ptr<Readiness>(new (std::nothrow) Readiness(options));
    if (self == nullptr) return base::failure(ENOMEM);
    if (const int error = self->poller_.open()) return base::failure(error);
    return self;
  }

  Result<> open_wake_up() noexcept override {
    // File operations may have opened it before.
    if (wake_up_.submitted()) return {};
    if (auto opened = wake_up_.open(!Poller::traits.supports_edge_triggered); !opened)
      return opened;
    // A loop that cannot be woken is unusable.
    if (wake_up_.fd() >= Poller::fd_end) return base::failure(ERANGE);
    records_.submit(wake_up_);
    return {};
  }

  void submit(detail::Operation& op) noexcept override {
    if (op.kind == detail::OperationKind::poll) [[likely]] {
      records_.submit(op);
    } else {
      files_->submit(static_cast<FileOperation&>(op));
    }
  }
  void cancel(detail::Operation& op) noexcept override {
    if (op.kind == detail::OperationKind::poll) [[likely]] {
      records_.cancel(op);
    } else {
      files_->cancel(static_cast<FileOperation&>(op));
    }
  }
  [[nodiscard]] bool supports(detail::OperationKind kind) noexcept override {
    if (kind == detail::OperationKind::poll) return true;
    if (!files_were_opened_) open_files();
    return files_ != nullptr && files_->supports(kind);
  }
  void cancel_and_wait(detail::Operation& op) noexcept override {
    files_->cancel_and_wait(static_cast<FileOperation&>(op));
  }
  void invalidate(int fd) noexcept override { records_.invalidate(fd); }
  /// Removes the registration immediately, because another thread may close the descriptor later.
  void deregister(int fd) noexcept override {
    if (!Poller::kernel_keeps_registrations || !records_.has_record(fd)) return;
    if (!is_of_this_process()) return;
    FdRecord& record = records_.at(fd);
    if (record.operations.empty() && record.armed.events != Events::none) withdraw(fd, record);
  }
  void unwatched(int fd) noexcept override {
    if (removals_due_ == 0 || !records_.has_record(fd)) return;
    FdRecord& record = records_.at(fd);
    if (!record.operations.empty() || record.armed.events == Events::none) return;
    if (!is_of_this_process()) return;
    --removals_due_;
    withdraw(fd, record);
  }
  void revalidate(int fd) noexcept override { records_.revalidate(fd); }
  void wake() noexcept override { wake_up_.wake(); }
  void abandon() noexcept override { records_.abandon(); }
  void feed(int fd, Events events, base::ReadyQueue& ready) noexcept override {
    records_.feed(fd, events, ready);
  }
  [[nodiscard]] const FdRecords* records() const noexcept override { return &records_; }

  void poll(std::int64_t timeout_ns, base::ReadyQueue& ready) noexcept override {
    apply_changes(ready);
    records_.take_failed(ready);
    if (!always_ready_.empty()) deliver_always_ready(ready);
    if (files_ != nullptr) [[unlikely]]
      return wait_with_files(timeout_ns, ready);
    wait(timeout_ns, ready);
  }

  void poll_until(std::int64_t until_ns, base::ReadyQueue& ready) noexcept override {
    poll(timeout_until(until_ns), ready);
  }
  void open_wait_timer() noexcept override {
    if constexpr (has_wait_timer) {
      if (wait_timer_.open()) add_wait_timer();
    }
  }

  Result<int> fd() noexcept override {
    // The caller waits with the descriptor: completions must make it readable.
    if (files_ != nullptr) files_->begin_wait();
    if constexpr (has_fd) {
      return poller_.fd();
    } else {
      if (const int error = mirror_.is_open() ? 0 : mirror_.open(records_))
        return base::failure(error);
      return mirror_.fd();
    }
  }
  [[nodiscard]] bool must_poll() const noexcept override {
    return records_.any_changes() || !always_ready_.empty() || mirror_.is_always_ready() ||
           stale_events_ || (files_ != nullptr && files_->must_transfer());
  }
  Result<> share() noexcept override {
    is_shared_ = true;
    if (files_ == nullptr) return {};
    if (const int error = files_->share()) return base::failure(error);
    return {};
  }

  bool disown_if_lost() noexcept override {
    // All descriptors of the loop are judged by the eventfd, because the kernel does not tell one
    // epoll set from another.
    if (wake_up_.is_open() ? !wake_up_.is_lost() : is_of_this_process()) return true;
    wake_up_.disown();
    wait_timer_.disown();
    if constexpr (requires { poller_.disown(); }) poller_.disown();
    mirror_.disown();
    if (files_ != nullptr) files_->disown();
    return false;
  }

  Result<> reopen() noexcept override {
    // Not submitted if an earlier reopen() failed.
    if (wake_up_.submitted()) records_.cancel(wake_up_);
    if (files_ != nullptr) files_->close_in_child();
    files_were_opened_ = false;
    // The child shares the timerfd with the parent.
    const bool had_wait_timer = wait_timer_.was_opened();
    wait_timer_.close();
    if (const int error = poller_.reopen()) return base::failure(error);
    if (const int error = mirror_.reopen()) return base::failure(error);
    records_.disarm_all();
    set_reopened();
    if (!wake_up_.is_open()) return {};
    auto opened = open_wake_up();
    if (opened && had_wait_timer) open_wait_timer();
    return opened;
  }

 private:
  static constexpr bool has_fd = requires(const Poller& poller) { poller.fd(); };
  static constexpr bool has_wait_timer =
      requires(Poller& poller) { poller.add_wait_timer(0, std::uint32_t{}); };
  /// In place of a WaitTimer.
  struct NoWaitTimer {
    static constexpr bool was_opened() noexcept { return false; }
    static constexpr void close() noexcept {}
    static constexpr void disown() noexcept {}
  };
  /// In place of a MirrorSet.
  struct NoMirror {
    static constexpr bool is_always_ready() noexcept { return false; }
    static constexpr int reopen() noexcept { return 0; }
    static constexpr void disown() noexcept {}
  };

  explicit Readiness(const LoopOptions& options) noexcept
      : submission_entries_(options.submission_entries),
        completion_entries_(options.completion_entries) {
    traits_ = Poller::traits;
  }

  /// Returns the timeout of a wait until `until_ns`.
  [[nodiscard]] std::int64_t timeout_until(std::int64_t until_ns) noexcept {
    if constexpr (has_wait_timer) {
      if (wait_timer_.is_set_by(until_ns)) return -1;
    }
    const std::int64_t timeout_ns = timeout_of(until_ns, base::monotonic_ns());
    if constexpr (has_wait_timer) {
      if (wait_timer_.should_set(timeout_ns)) [[unlikely]] {
        ++system_calls_;
        TAMBOUR_PROBE1(wait_timer, timeout_ns);
        if (wait_timer_.set(until_ns)) return -1;
      }
    }
    return timeout_ns;
  }

  void add_wait_timer() noexcept {
    const auto generation = records_.take_generation(wait_timer_.fd());
    if (generation && poller_.add_wait_timer(wait_timer_.fd(), *generation) == 0)
      return wait_timer_.note_added(*generation);
    wait_timer_.close();
  }

  void wait(std::int64_t timeout_ns, base::ReadyQueue& ready) noexcept {
    if (ready.any_came()) timeout_ns = 0;
    ++system_calls_;
    TAMBOUR_PROBE1(poll, timeout_ns);
    poller_.wait(timeout_ns, Sink{*this, ready, records_.data()});
    if constexpr (!has_fd) {
      if (mirror_.is_open()) mirror_.drop_stale(records_);
    }
    if (stale_events_) rebuild();
  }

  /// Without a ring, threads perform the file operations.
  void open_files() noexcept {
    files_were_opened_ = true;
    if (!wake_up_.is_open() && !open_wake_up()) return;
    const bool is_new = files_ == nullptr;
    if (is_new) {
      files_.reset(new (std::nothrow)
                       FileRing(submission_entries_, completion_entries_, system_calls_));
      if (files_ == nullptr) return;
      if (is_shared_) static_cast<void>(files_->share());
    }
    // After fork(2), operations of the parent's ring may not have completed yet.
    if (files_->open(wake_up_.fd()) != 0 && is_new) files_.reset();
  }

  void wait_with_files(std::int64_t timeout_ns, base::ReadyQueue& ready) noexcept {
    if (files_->transfer(ready) && !must_wait()) return;
    if (timeout_ns != 0 && !files_->begin_wait()) timeout_ns = 0;
    wait(timeout_ns, ready);
    files_->end_wait(ready);
  }

  [[nodiscard]] bool must_wait() const noexcept {
    return records_.any_changes() || !always_ready_.empty();
  }

  struct Sink {
    Readiness& self;
    base::ReadyQueue& ready;
    FdRecord* records;  ///< Nothing that runs during the wait adds records.

    void operator()(int fd, Events events, std::uint32_t generation) const noexcept {
      FdRecord& record = records[fd];
      if (is_of_former_file(record, generation)) {
        if constexpr (has_wait_timer) {
          if (self.wait_timer_.is_event_of_timer(fd, generation))
            return self.wait_timer_.note_expired();
        }
        // The file of this registration was closed here, but a duplicate (dup(2), fork(2)) keeps it
        // open, and epoll_ctl(2) cannot reach the registration.
        self.stale_events_ = true;
      } else if (!FdRecords::deliver(record, events, ready)) {
        if (Poller::kernel_keeps_registrations && record.wanted().events == Events::none) {
          self.take_back(fd, record);
        } else {
          self.records_.note_change(fd);
        }
      }
    }

    /// With thousands of descriptors, the record of the next event is rarely in a cache.
    [[nodiscard]] bool outgrows_caches() const noexcept { return self.records_.size() > 4096; }

    void prefetch_record(int fd) const noexcept { __builtin_prefetch(&self.records_.at(fd)); }

    void prefetch_operation(int fd) const noexcept {
      const detail::Operation* const op = self.records_.at(fd).operations.front();
      if (op == nullptr) return;
      __builtin_prefetch(op);
      // The members of the derived class, among them the callback.
      __builtin_prefetch(op + 1);
    }

    static bool is_of_former_file(const FdRecord& record, std::uint32_t generation) noexcept {
      return Poller::kernel_keeps_registrations && record.generation != generation;
    }

    void fail(int fd, int error) const noexcept {
      self.records_.fail(self.records_.at(fd), error, ready);
    }
  };

  void apply_changes(base::ReadyQueue& ready) noexcept {
    records_.take_changes([&](int fd, FdRecord& record) { apply_change(fd, record, ready); });
  }

  void apply_change(int fd, FdRecord& record, base::ReadyQueue& ready) noexcept {
    const Interest wanted = record.wanted();
    // A registration without interest stays in the kernel until it reports an event: most of them
    // are closed or used again before that.
    if (Poller::kernel_keeps_registrations && wanted.events == Events::none) return;
    const bool unverified = std::exchange(record.unverified, false);
    const bool likely = std::exchange(record.likely, false);
    const bool edge_is_due =
        std::exchange(record.edge_is_due, false) && wanted.trigger == Trigger::edge;
    if (record.always_ready && !unverified) return;
    if (wanted == record.armed && !unverified && !edge_is_due) return;
    if (wanted.events == Events::none && record.armed.events == Events::none) return;
    ++system_calls_;
    TAMBOUR_PROBE2(submit, fd, unsigned(wanted.events));
    const int outcome = set(fd, record, wanted, unverified, likely);
    switch (outcome) {
      case kept:
        break;
      case 0:
        ++record.generation;
        record.armed = wanted;
        record.always_ready = false;
        break;
      case EPERM:
        note_always_ready(fd, record, ready);
        break;
      case EOPNOTSUPP:
        // Fails the operations that asked for it, and registers the others again.
        records_.fail(record, outcome, ready, Events::closed);
        records_.note_change(fd);
        break;
      default:
        records_.fail(record, outcome, ready);
    }
  }

  int set(int fd, FdRecord& record, Interest wanted, bool unverified, bool likely) noexcept {
    const Change change{.fd = fd,
                        .old = record.armed,
                        .now = wanted,
                        .unverified = unverified,
                        .likely = likely,
                        .generation = record.generation + 1,
                        .left_behind = record.left_behind};
    if constexpr (!has_fd) {
      const int error = mirror_.is_open() ? mirror_.set(change) : 0;
      if (error != 0) return error;
    }
    return poller_.set(change);
  }

  /// Called if the kernel reports events that no operation asked for. Removes the registration
  /// immediately, before a callback can close the descriptor and another thread can reuse its
  /// number.
  void take_back(int fd, FdRecord& record) noexcept {
    if (record.unverified && !record.likely) {
      // The file was closed here, but a duplicate keeps it open.
      stale_events_ = true;
    } else {
      withdraw(fd, record);
    }
  }

  void withdraw(int fd, FdRecord& record) noexcept {
    ++system_calls_;
    TAMBOUR_PROBE2(submit, fd, 0U);
    set(fd, record, {}, record.unverified, record.likely);
    ++record.generation;
    record.armed = {};
  }

  void note_always_ready(int fd, FdRecord& record, base::ReadyQueue& ready) noexcept {
    record.armed = {};
    if (record.always_ready) return;
    try {
      always_ready_.push_back(fd);
      record.always_ready = true;
    } catch (const std::bad_alloc&) {
      records_.fail(record, ENOMEM, ready);
    }
  }

  /// poll(2) reports regular files as always readable and writable; all backends do the same.
  void deliver_always_ready(base::ReadyQueue& ready) noexcept {
    std::erase_if(always_ready_, [&](int fd) {
      FdRecord& record = records_.at(fd);
      if (record.always_ready && FdRecords::deliver(record, Events::read | Events::write, ready))
        return false;
      record.always_ready = false;
      return true;
    });
  }

  void rebuild() noexcept {
    stale_events_ = false;
    // If a new set cannot be opened, keep the old one and its spurious wakeups; the next one tries
    // again.
    if (poller_.reopen() != 0) return;
    if constexpr (has_wait_timer) {
      if (wait_timer_.is_open()) add_wait_timer();
    }
    constexpr std::size_t removals_least = 64;
    removals_due_ = std::max(records_.disarm_all(), removals_least);
  }

  void prepare_to_close(int fd) noexcept override { unwatched(fd); }

  Poller poller_;
  FdRecords records_;
  WakeUp wake_up_{records_};
  [[no_unique_address]] std::conditional_t<has_wait_timer, WaitTimer, NoWaitTimer> wait_timer_;
  [[no_unique_address]] std::conditional_t<has_fd, NoMirror, MirrorSet> mirror_;
  unsigned submission_entries_;
  unsigned completion_entries_;
  std::unique_ptr<FileRing> files_;  ///< Null before the first file operation, and without a ring.
  bool files_were_opened_ = false;
  bool is_shared_ = false;
  std::vector<int> always_ready_;
  bool stale_events_ = false;
  /// An event of a closed file was reported, so another process holds duplicates of some
  /// descriptors (fork(2)), possibly of all. A registration that is left to close(2) then survives,
  /// reports events and causes a rebuild, which costs one system call per descriptor. Therefore
  /// registrations are removed explicitly before close(2), for as many closes as the last rebuild
  /// made system calls. This costs at most three amortized calls per close, however long the
  /// duplicates exist, and none if there are no duplicates.
  std::size_t removals_due_ = 0;
};

}  // namespace tambour::detail::backend
