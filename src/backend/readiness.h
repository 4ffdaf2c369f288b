// A backend out of any system call that reports readiness: epoll, poll, select.
//
// A Poller knows the system call and nothing else:
//
//   static constexpr BackendTraits traits;
//   static constexpr bool kernel_keeps_registrations;
//   static constexpr int fd_end;                one more than the highest descriptor that it takes
//   int open() noexcept;                        0, or an errno value
//   int set(const Change& change) noexcept;     0, `kept`, or an errno value
//   void wait(std::int64_t timeout_ns, Sink&& sink) noexcept;
//   int reopen() noexcept;                      as open(), with nothing registered
//   int descriptor() const noexcept;            optional: readable when wait() would report
//
// and calls sink(fd, events, generation) for what is ready, and sink.fail(fd, error) for
// descriptors that turn out to be none.
#pragma once

#include <algorithm>
#include <cerrno>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/fd_records.h"
#include "backend/wake_up.h"
#include "base/probe.h"

namespace tambour::backend {

/// What a Poller is to tell the kernel of one descriptor.
struct Change {
  int fd;
  Interest old;              ///< What it was told last.
  Interest now;              ///< Events::none: to be removed.
  bool unsure;               ///< The number may mean another file since;
  bool likely;               ///< it most likely does not.
  std::uint32_t generation;  ///< Of a new registration, to come back with its events.
  bool& left_behind;         ///< For epoll to keep, see FdRecord.
};

/// The registration is there already, as it is to be, with its former generation.
inline constexpr int kept = -1;

template <class Poller>
class Readiness final : public Backend {
 public:
  static Result<std::unique_ptr<Backend>> open() {
    auto self = std::unique_ptr<Readiness>(new (std::nothrow) Readiness);
    if (self == nullptr) return std::unexpected(system_error(ENOMEM));
    if (const int error = self->poller_.open()) return std::unexpected(system_error(error));
    return self;
  }

  Result<> open_wake_up() noexcept override {
    if (auto opened = wake_up_.open(!Poller::traits.edges); !opened) return opened;
    // A loop that cannot be woken is of no use.
    if (wake_up_.fd >= Poller::fd_end) return std::unexpected(system_error(ERANGE));
    records_.submit(wake_up_);
    return {};
  }

  void submit(Operation& op) noexcept override { records_.submit(op); }
  void cancel(Operation& op) noexcept override { records_.cancel(op); }
  void forget(int fd) noexcept override { records_.forget(fd); }
  /// At once, while this thread is still the one that may close it.
  void let_go(int fd) noexcept override {
    if (!Poller::kernel_keeps_registrations || !records_.knows(fd)) return;
    if (!is_of_this_process()) return;
    FdRecord& record = records_.at(fd);
    if (record.first == nullptr && record.armed.events != Events::none) withdraw(fd, record);
  }
  void unwatched(int fd) noexcept override {
    if (removals_due_ == 0 || !records_.knows(fd)) return;
    FdRecord& record = records_.at(fd);
    if (record.first != nullptr || record.armed.events == Events::none) return;
    if (!is_of_this_process()) return;
    --removals_due_;
    withdraw(fd, record);
  }
  void doubt(int fd) noexcept override { records_.doubt(fd); }
  void wake() noexcept override { wake_up_.wake(); }
  void abandon() noexcept override { records_.abandon(); }
  void feed(int fd, Events events, ReadyQueue& ready) noexcept override {
    records_.feed(fd, events, ready);
  }

  void poll(std::int64_t timeout_ns, ReadyQueue& ready) noexcept override {
    apply_changes(ready);
    records_.take_failed(ready);
    if (!always_ready_.empty()) deliver_always_ready(ready);
    if (ready.any_came()) timeout_ns = 0;
    ++system_calls_;
    TAMBOUR_PROBE1(poll, timeout_ns);
    poller_.wait(timeout_ns, Sink{*this, ready});
    if (strangers_) rebuild();
  }

  Result<int> descriptor() noexcept override {
    if constexpr (requires { poller_.descriptor(); }) {
      return poller_.descriptor();
    } else {
      return Backend::descriptor();
    }
  }
  [[nodiscard]] bool must_poll() const noexcept override {
    return records_.any_changes() || !always_ready_.empty() || strangers_;
  }

  Result<> reopen() noexcept override {
    // Not submitted where reopening has failed before.
    if (wake_up_.link_on_fd != nullptr) records_.cancel(wake_up_);
    if (const int error = poller_.reopen()) return std::unexpected(system_error(error));
    records_.disarm_all();
    take_over();
    if (!wake_up_.is_open()) return {};
    return open_wake_up();
  }

 private:
  Readiness() noexcept { traits_ = Poller::traits; }

  struct Sink {
    Readiness& self;
    ReadyQueue& ready;

    void operator()(int fd, Events events, std::uint32_t generation) const noexcept {
      FdRecord& record = self.records_.at(fd);
      if (is_stranger(record, generation)) {
        // A file that was closed under this number lives on elsewhere (dup(2), fork(2)), and so
        // does its registration, out of reach of epoll_ctl(2).
        self.strangers_ = true;
      } else if (!FdRecords::deliver(record, events, ready)) {
        if (Poller::kernel_keeps_registrations && record.wanted().events == Events::none) {
          self.take_back(fd, record);
        } else {
          self.records_.note_change(fd);
        }
      }
    }

    /// Among thousands of descriptors, what is known of the next one is rarely in a cache.
    [[nodiscard]] bool outgrows_caches() const noexcept { return self.records_.size() > 4096; }

    void prefetch_record(int fd) const noexcept { __builtin_prefetch(&self.records_.at(fd)); }

    void prefetch_operation(int fd) const noexcept {
      const Operation* const op = self.records_.at(fd).first;
      if (op == nullptr) return;
      __builtin_prefetch(op);
      // What is derived from it: the callback.
      __builtin_prefetch(op + 1);
    }

    static bool is_stranger(const FdRecord& record, std::uint32_t generation) noexcept {
      return Poller::kernel_keeps_registrations && record.generation != generation;
    }

    void fail(int fd, int error) const noexcept {
      self.records_.fail(self.records_.at(fd), error, ready);
    }
  };

  void apply_changes(ReadyQueue& ready) noexcept {
    records_.take_changes([&](int fd, FdRecord& record) { apply_change(fd, record, ready); });
  }

  void apply_change(int fd, FdRecord& record, ReadyQueue& ready) noexcept {
    const Interest wanted = record.wanted();
    // A registration that nobody wants stays in the kernel until it reports something: most are
    // gone with their descriptor before that, or wanted again.
    if (Poller::kernel_keeps_registrations && wanted.events == Events::none) return;
    const bool unsure = std::exchange(record.unsure, false);
    const bool likely = std::exchange(record.likely, false);
    const bool edge_is_due =
        std::exchange(record.edge_is_due, false) && wanted.trigger == Trigger::edge;
    if (record.always_ready && !unsure) return;
    if (wanted == record.armed && !unsure && !edge_is_due) return;
    if (wanted.events == Events::none && record.armed.events == Events::none) return;
    ++system_calls_;
    TAMBOUR_PROBE2(submit, fd, unsigned(wanted.events));
    const int outcome = set(fd, record, wanted, unsure, likely);
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
        // Told to those who asked for it; the others are looked at anew.
        records_.fail(record, outcome, ready, Events::closed);
        records_.note_change(fd);
        break;
      default:
        records_.fail(record, outcome, ready);
    }
  }

  int set(int fd, FdRecord& record, Interest wanted, bool unsure, bool likely) noexcept {
    return poller_.set({.fd = fd,
                        .old = record.armed,
                        .now = wanted,
                        .unsure = unsure,
                        .likely = likely,
                        .generation = record.generation + 1,
                        .left_behind = record.left_behind});
  }

  /// The kernel reported what nobody asked for. At once, before any callback can close the
  /// descriptor: its number may be another thread's file by the next wait.
  void take_back(int fd, FdRecord& record) noexcept {
    if (record.unsure && !record.likely) {
      // Closed under this number, and alive elsewhere.
      strangers_ = true;
    } else {
      withdraw(fd, record);
    }
  }

  void withdraw(int fd, FdRecord& record) noexcept {
    ++system_calls_;
    TAMBOUR_PROBE2(submit, fd, 0U);
    set(fd, record, {}, record.unsure, record.likely);
    ++record.generation;
    record.armed = {};
  }

  void note_always_ready(int fd, FdRecord& record, ReadyQueue& ready) noexcept {
    record.armed = {};
    if (record.always_ready) return;
    try {
      always_ready_.push_back(fd);
      record.always_ready = true;
    } catch (const std::bad_alloc&) {
      records_.fail(record, ENOMEM, ready);
    }
  }

  /// poll(2) says of regular files that they are ready for reading and writing; so do we.
  void deliver_always_ready(ReadyQueue& ready) noexcept {
    std::erase_if(always_ready_, [&](int fd) {
      FdRecord& record = records_.at(fd);
      if (record.always_ready && FdRecords::deliver(record, Events::read | Events::write, ready))
        return false;
      record.always_ready = false;
      return true;
    });
  }

  void rebuild() noexcept {
    strangers_ = false;
    // Where there is no descriptor for a new set, the old one serves on, at the price of being
    // woken by strangers, until there is.
    if (poller_.reopen() != 0) return;
    constexpr std::size_t removals_least = 64;
    removals_due_ = std::max(records_.disarm_all(), removals_least);
  }

  void prepare_to_close(int fd) noexcept override { unwatched(fd); }

  Poller poller_;
  FdRecords records_;
  WakeUp wake_up_{records_};
  std::vector<int> always_ready_;
  bool strangers_ = false;
  /// Events of a closed file were seen, so another process holds copies of our descriptors
  /// (fork(2)), perhaps of all. A registration that is left to close(2) then survives, reports
  /// events, and costs a rebuild: one call for each descriptor. So for as many closes as the last
  /// rebuild had calls, registrations are removed explicitly while the descriptor is open: at most
  /// three calls a close, amortized, however long the copies live, and none where there are no
  /// copies.
  std::size_t removals_due_ = 0;
};

}  // namespace tambour::backend
