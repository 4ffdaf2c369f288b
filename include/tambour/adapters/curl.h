// libcurl's multi interface on a loop: transfers as awaitables.
//
//   CurlTransfers transfers(loop);
//   const CURLcode result = co_await transfers.perform(easy);
//
// Link with -lcurl. Requires libcurl 7.28 or later. Configure each transfer with
// curl_easy_setopt(3), its time limits and repetitions among that; CURLOPT_PRIVATE is used by this
// class.
#pragma once

#include <curl/curl.h>

#include <chrono>
#include <coroutine>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <source_location>
#include <utility>
#include <vector>

#include <tambour/detail/resumption.h>
#include <tambour/detail/stop_hook.h>
#include <tambour/loop/event_loop.h>
#include <tambour/loop/fd_watcher.h>
#include <tambour/loop/timer.h>
#include <tambour/task/context.h>
#include <tambour/task/task.h>

#pragma GCC visibility push(default)

namespace tambour::adapters {

/// Transfers on one loop, which share connections, DNS results and TLS sessions.
///
/// Ownership: owns the multi handle; the easy handles belong to the program, which frees them after
/// their waits. Lifetime: destroy it after all waits, and before the loop; a task that it resumes
/// may do so. Thread: the loop's. Call curl_global_init(3) before.
/// Cancellation: a wait that is stopped or destroyed removes its transfer, which ends it. Do not
/// destroy the wait inside a callback of libcurl, such as CURLOPT_WRITEFUNCTION.
class CurlTransfers {
 public:
  class Wait;

  /// Throws std::bad_alloc if curl_multi_init(3) fails.
  explicit CurlTransfers(EventLoop& loop)
      : loop_(loop), timer_(loop, [this] { act(CURL_SOCKET_TIMEOUT, 0); }) {
    if (multi_ == nullptr) throw std::bad_alloc();
    curl_multi_setopt(multi_.get(), CURLMOPT_SOCKETFUNCTION, &socket_changed);
    curl_multi_setopt(multi_.get(), CURLMOPT_SOCKETDATA, this);
    curl_multi_setopt(multi_.get(), CURLMOPT_TIMERFUNCTION, &timeout_changed);
    curl_multi_setopt(multi_.get(), CURLMOPT_TIMERDATA, this);
  }
  CurlTransfers(const CurlTransfers&) = delete;
  CurlTransfers& operator=(const CurlTransfers&) = delete;
  ~CurlTransfers() {
    if (is_destroyed_ != nullptr) *is_destroyed_ = true;
  }

  /// For curl_multi_setopt(3): limits of connections, for example.
  [[nodiscard]] CURLM* multi() const noexcept { return multi_.get(); }

  /// Performs a transfer when it is awaited, and returns its result: CURLE_ABORTED_BY_CALLBACK if
  /// the task was asked to stop, CURLE_FAILED_INIT if libcurl refuses the handle, and
  /// CURLE_OUT_OF_MEMORY also if there is no memory to watch its socket.
  [[nodiscard]] Wait perform(CURL* easy) noexcept;

 private:
  static int socket_changed(CURL* easy, curl_socket_t fd, int action, void* self, void* /*data*/) {
    try {
      static_cast<CurlTransfers*>(self)->watch(fd, action);
    } catch (const std::bad_alloc&) {  // It must not leave a function that libcurl calls.
      fail(easy, CURLE_OUT_OF_MEMORY);
    }
    return 0;
  }
  static int timeout_changed(CURLM* /*multi*/, long milliseconds, void* self) {
    auto& transfers = *static_cast<CurlTransfers*>(self);
    transfers.is_due_ = milliseconds == 0;
    if (milliseconds < 0)
      transfers.timer_.stop();
    else if (milliseconds == 0)
      transfers.timer_.reset(Duration::zero());  // Without reading the clock.
    else
      transfers.timer_.start(std::chrono::milliseconds(milliseconds));
    return 0;
  }

  void watch(curl_socket_t fd, int action) {
    if (action == CURL_POLL_REMOVE) {
      if (const auto at = watchers_.find(fd); at != watchers_.end()) at->second.stop();
      return;
    }
    Events interest = (action & CURL_POLL_IN) != 0 ? Events::read : Events::write;
    if (action == CURL_POLL_INOUT) interest = Events::read | Events::write;
    // libcurl reports the removal of a socket before the number is used again.
    const auto [at, is_new] =
        watchers_.try_emplace(fd, loop_, fd, interest, [this, fd](Events events) {
          act(fd, (has(events, Events::read) ? CURL_CSELECT_IN : 0) |
                      (has(events, Events::write) ? CURL_CSELECT_OUT : 0) |
                      (has(events, Events::error) ? CURL_CSELECT_ERR : 0));
        });
    if (at->second.is_started()) return at->second.set(interest);
    // Another socket may have the number.
    if (!is_new) at->second.set(fd, interest);
    // A failure is reported to the callback, and so to libcurl.
    static_cast<void>(at->second.start());
  }

  static void fail(CURL* easy, CURLcode result);
  void act(curl_socket_t fd, int events);
  /// Resumes the tasks of the transfers that have ended, which may add and remove others. Returns
  /// false if one of them has destroyed this object.
  bool resume_ended();

  EventLoop& loop_;
  bool* is_destroyed_ = nullptr;  ///< Of resume_ended(), while it runs.
  Timer timer_;
  bool is_due_ = false;  ///< The timer expires at once.
  /// A connection that is kept is watched during each of its transfers: its watcher stays here.
  std::map<curl_socket_t, FdWatcher> watchers_;
  // Destroyed before the watchers: it still calls socket_changed().
  std::unique_ptr<CURLM, decltype(&curl_multi_cleanup)> multi_{curl_multi_init(),
                                                               &curl_multi_cleanup};
};

class [[nodiscard]] CurlTransfers::Wait : private tambour::detail::StopHook {
 public:
  Wait(Wait&& other) noexcept : Wait(other.transfers_, other.easy_) {}
  Wait& operator=(Wait&&) = delete;
  ~Wait() { remove(); }

  [[nodiscard]] static bool await_ready() noexcept { return false; }
  template <HasTaskContext Promise>
  bool await_suspend(std::coroutine_handle<Promise> awaiting,
                     std::source_location at = std::source_location::current()) {
    const TaskContext& context = awaiting.promise().context();
    note_wait(awaiting, WaitNote(WaitKind::other, easy_), at);
    if (context.stop.stop_requested()) {
      result_ = CURLE_ABORTED_BY_CALLBACK;
      return false;
    }
    awaiting_ = awaiting;
    curl_easy_setopt(easy_, CURLOPT_PRIVATE, this);
    if (curl_multi_add_handle(transfers_.multi(), easy_) != CURLM_OK) return false;
    is_added_ = true;
    context.waits.add(*this, context.stop);
    return true;
  }
  [[nodiscard]] CURLcode await_resume() noexcept {
    remove();
    return result_;
  }

 private:
  friend class CurlTransfers;
  static void stop(StopHook& hook) noexcept {
    // This may be inside a callback of libcurl, which forbids to remove the transfer there.
    static_cast<Wait&>(hook).finish_later(CURLE_ABORTED_BY_CALLBACK);
  }

  Wait(CurlTransfers& transfers, CURL* easy) noexcept
      : StopHook(&stop), transfers_(transfers), easy_(easy) {}

  void remove() noexcept {
    if (std::exchange(is_added_, false)) curl_multi_remove_handle(transfers_.multi(), easy_);
  }
  /// In the next iteration, or at once if the transfer ends before.
  void finish_later(CURLcode result) {
    ignore_stop();
    result_ = result;
    later_.emplace(transfers_.loop_, [this] { tambour::detail::Resumption::run(awaiting_); });
    later_->start(Duration::zero());
  }
  void finish(CURLcode result) {
    if (later_) return;  // The task was asked to stop, or the transfer has failed.
    ignore_stop();
    result_ = result;
    tambour::detail::Resumption::run(awaiting_);
  }

  CurlTransfers& transfers_;
  CURL* easy_;
  bool is_added_ = false;
  CURLcode result_ = CURLE_FAILED_INIT;
  std::coroutine_handle<> awaiting_;
  std::optional<Timer> later_;
};

inline CurlTransfers::Wait CurlTransfers::perform(CURL* easy) noexcept { return {*this, easy}; }

inline void CurlTransfers::fail(CURL* easy, CURLcode result) {
  Wait* wait = nullptr;
  curl_easy_getinfo(easy, CURLINFO_PRIVATE, &wait);
  // libcurl also has handles of its own.
  if (wait != nullptr) wait->finish_later(result);
}

inline void CurlTransfers::act(curl_socket_t fd, int events) {
  is_due_ = false;
  int running = 0;
  curl_multi_socket_action(multi_.get(), fd, events, &running);
  if (!resume_ended() || !is_due_) return;
  // The tasks have begun transfers: libcurl sends their requests now, and not in another iteration.
  timer_.stop();
  curl_multi_socket_action(multi_.get(), CURL_SOCKET_TIMEOUT, 0, &running);
  static_cast<void>(resume_ended());
}

inline bool CurlTransfers::resume_ended() {
  // A resumed task may destroy this object, after the other waits.
  bool is_destroyed = false;
  bool* const outer = std::exchange(is_destroyed_, &is_destroyed);
  int left = 0;
  while (const CURLMsg* const message = curl_multi_info_read(multi_.get(), &left)) {
    Wait* wait = nullptr;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &wait);
    wait->finish(message->data.result);
    if (is_destroyed) {
      if (outer != nullptr) *outer = true;
      return false;
    }
  }
  is_destroyed_ = outer;
  return true;
}

}  // namespace tambour::adapters

#pragma GCC visibility pop
