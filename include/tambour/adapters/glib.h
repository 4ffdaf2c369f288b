// GLib's main context inside a loop, and a loop inside GLib's main context.
//
// Link with glib-2.0 (pkg-config). GTK, GIO and other libraries on GLib work with both.
#pragma once

#include <glib.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include <tambour/base/result.h>
#include <tambour/loop/event_loop.h>
#include <tambour/loop/fd_watcher.h>
#include <tambour/loop/hooks.h>
#include <tambour/loop/timer.h>

#pragma GCC visibility push(default)

namespace tambour::adapters {

/// Runs the sources of a GMainContext in an EventLoop, in place of g_main_loop_run().
///
/// Ownership: a reference to the context. Lifetime: must not be destroyed inside a callback of the
/// context. Thread: the loop's, which start() makes the owner of the context.
/// Loop: while started, it keeps the loop running.
/// Exceptions must not leave callbacks of GLib.
class GlibContext {
 public:
  /// Null: the default context.
  explicit GlibContext(EventLoop& loop, GMainContext* context = nullptr)
      : loop_(loop),
        context_(g_main_context_ref(context != nullptr ? context : g_main_context_default())),
        before_wait_(loop, [this] { prepare(); }),
        timer_(loop, [this] { dispatch(); }) {}
  GlibContext(const GlibContext&) = delete;
  GlibContext& operator=(const GlibContext&) = delete;
  ~GlibContext() {
    stop();
    g_main_context_unref(context_);
  }

  /// Fails with EBUSY if another thread owns the context.
  [[nodiscard]] Result<> start() {
    if (before_wait_.is_started()) return {};
    if (g_main_context_acquire(context_) == 0) return std::unexpected(system_error(EBUSY));
    before_wait_.start();
    return {};
  }
  void stop() noexcept {
    if (!before_wait_.is_started()) return;
    before_wait_.stop();
    timer_.stop();
    watchers_.clear();
    is_prepared_ = false;
    g_main_context_release(context_);
  }

 private:
  struct Watched {
    FdWatcher watcher;
    Events interest;
    bool is_wanted;
  };

  /// Asks the sources what they wait for. Runs before each wait: any callback may change it.
  void prepare() {
    const bool is_ready = g_main_context_prepare(context_, &priority_) != 0;
    gint timeout_ms = -1;
    for (;;) {
      const auto size = static_cast<gint>(fds_.size());
      count_ = g_main_context_query(context_, priority_, &timeout_ms, fds_.data(), size);
      if (count_ <= size) break;
      fds_.resize(static_cast<std::size_t>(count_));
    }
    is_prepared_ = true;
    watch();
    if (is_ready || timeout_ms == 0) {
      if (!timer_.is_started() || timer_.deadline() > loop_.now()) timer_.start(Duration::zero());
    } else if (timeout_ms < 0) {
      timer_.stop();
    } else {
      timer_.start(std::chrono::milliseconds(timeout_ms));
    }
  }

  void watch() {
    for (auto& [fd, watched] : watchers_) watched.is_wanted = false;
    for (gint i = 0; i < count_; ++i) {
      const GPollFD& polled = fds_[static_cast<std::size_t>(i)];
      const auto interest = Events(polled.events & (G_IO_IN | G_IO_OUT | G_IO_PRI));
      const auto [at, is_new] = watchers_.try_emplace(
          polled.fd, Watched{FdWatcher(loop_, polled.fd, interest, [this](Events) { dispatch(); }),
                             interest, true});
      Watched& watched = at->second;
      if (!is_new) {
        // Several sources may wait for one descriptor.
        const Events sum = watched.is_wanted ? watched.interest | interest : interest;
        watched.is_wanted = true;
        // A source may have closed the descriptor, and its number means another file now.
        if (sum != watched.interest || was_dispatched_) watched.watcher.set(polled.fd, sum);
        watched.interest = sum;
      }
      if (!watched.watcher.is_started()) static_cast<void>(watched.watcher.start());
    }
    std::erase_if(watchers_, [](const auto& entry) { return !entry.second.is_wanted; });
    was_dispatched_ = false;
  }

  void dispatch() {
    // A GLib callback may run this loop.
    if (!std::exchange(is_prepared_, false)) return;
    const GPollFunc poll = g_main_context_get_poll_func(context_);
    poll(fds_.data(), static_cast<guint>(count_), 0);
    if (g_main_context_check(context_, priority_, fds_.data(), count_) != 0) {
      was_dispatched_ = true;
      g_main_context_dispatch(context_);
    }
    // Not left to the next iteration: a host of the loop asks for its deadline before that.
    if (before_wait_.is_started()) prepare();
  }

  EventLoop& loop_;
  GMainContext* context_;
  Prepare before_wait_;
  Timer timer_;
  gint priority_ = 0;
  gint count_ = 0;
  std::vector<GPollFD> fds_;
  bool is_prepared_ = false;
  bool was_dispatched_ = false;
  std::map<int, Watched> watchers_;
};

/// Runs an EventLoop as a source of a GMainContext: g_main_loop_run() then runs the loop's timers,
/// watchers and tasks too. Timers are up to a millisecond late.
///
/// Lifetime: destroy it before the loop. Thread: the loop's, which must be the one that runs the
/// context. An exception of a callback of the loop ends the program.
class GlibHost {
 public:
  /// Null: the default context. `priority` is that of all callbacks of the loop.
  explicit GlibHost(EventLoop& loop, GMainContext* context = nullptr,
                    int priority = G_PRIORITY_DEFAULT)
      : context_(context), priority_(priority), loop_(loop) {}
  GlibHost(const GlibHost&) = delete;
  GlibHost& operator=(const GlibHost&) = delete;
  ~GlibHost() { stop(); }

  /// Fails as EventLoop::fd() does.
  [[nodiscard]] Result<> start() {
    if (source_ != nullptr) return {};
    const auto fd = loop_.fd();
    if (!fd) return std::unexpected(fd.error());
    static GSourceFuncs functions{&prepare, &check, &dispatch, nullptr, nullptr, nullptr};
    source_ = g_source_new(&functions, sizeof(Source));
    of(source_) = this;
    g_source_set_name(source_, "tambour::EventLoop");
    g_source_set_priority(source_, priority_);
    // A callback of the loop may run the context.
    g_source_set_can_recurse(source_, TRUE);
    tag_ = g_source_add_unix_fd(source_, *fd, G_IO_IN);
    g_source_attach(source_, context_);
    return {};
  }
  void stop() noexcept {
    if (source_ == nullptr) return;
    g_source_destroy(source_);
    g_source_unref(std::exchange(source_, nullptr));
  }

 private:
  struct Source {
    GSource base;
    GlibHost* host;
  };
  static GlibHost*& of(GSource* source) noexcept { return reinterpret_cast<Source*>(source)->host; }

  /// What is left until the next deadline, rounded up; negative: no limit.
  [[nodiscard]] gint timeout_ms() {
    const TimePoint deadline = loop_.next_deadline();
    if (deadline == never) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    return static_cast<gint>(std::clamp<std::int64_t>(left.count(), 0, 86'400'000));
  }

  static gboolean prepare(GSource* source, gint* timeout) noexcept {
    *timeout = of(source)->timeout_ms();
    return *timeout == 0 ? TRUE : FALSE;
  }
  static gboolean check(GSource* source) noexcept {
    GlibHost& self = *of(source);
    if (g_source_query_unix_fd(source, self.tag_) != 0) return TRUE;
    return self.timeout_ms() == 0 ? TRUE : FALSE;
  }
  static gboolean dispatch(GSource* source, GSourceFunc /*callback*/, gpointer /*data*/) noexcept {
    of(source)->loop_.run_ready();
    return G_SOURCE_CONTINUE;
  }

  GMainContext* context_;
  int priority_;
  EventLoop& loop_;
  GSource* source_ = nullptr;
  gpointer tag_ = nullptr;
};

}  // namespace tambour::adapters

#pragma GCC visibility pop
