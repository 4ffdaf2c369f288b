// The events of hiredis' asynchronous interface on a loop, for programs that call its functions
// themselves; <tambour/adapters/hiredis.h> has commands as awaitables.
#pragma once

#include <hiredis/async.h>
#include <hiredis/hiredis.h>
#include <pthread.h>
#include <sys/socket.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <ctime>
#include <utility>

#include <tambour/loop/event_loop.h>
#include <tambour/loop/fd_watcher.h>
#include <tambour/loop/timer.h>

#pragma GCC visibility push(default)

namespace tambour::adapters {

/// Watches the socket of a redisAsyncContext, as the files of hiredis/adapters/ do for other loops.
/// The context owns it, and may be freed inside its callbacks.
///
/// hiredis asks to write after each command. Commands of one callback are written together, at its
/// end or in the next iteration; EPOLLOUT is needed only if the socket is full. hiredis writes with
/// write(2), which raises SIGPIPE if the server has ended the connection: this class writes itself,
/// or blocks the signal meanwhile, also for the callbacks that hiredis invokes while it writes.
class RedisEvents {
 public:
  /// Call it once, after redisAsyncConnect().
  static void attach(EventLoop& loop, redisAsyncContext& context) {
    context.ev.data = new RedisEvents(loop, context);
    context.ev.addRead = [](void* self) { of(self).set(of(self).interest_ | Events::read); };
    context.ev.delRead = [](void* self) { of(self).set(of(self).interest_ & ~Events::read); };
    context.ev.addWrite = [](void* self) { of(self).want_write(); };
    context.ev.delWrite = [](void* self) { of(self).stop_writing(); };
    context.ev.cleanup = [](void* self) { delete &of(self); };
#if HIREDIS_MAJOR >= 1
    context.ev.scheduleTimer = [](void* self, timeval limit) {
      of(self).limit_.start(std::chrono::seconds(limit.tv_sec) +
                            std::chrono::microseconds(limit.tv_usec));
    };
#endif
  }
  RedisEvents(const RedisEvents&) = delete;
  RedisEvents& operator=(const RedisEvents&) = delete;

 private:
  RedisEvents(EventLoop& loop, redisAsyncContext& context)
      : context_(context),
        watcher_(loop, context.c.fd, Events::none, [this](Events events) { act(events); }),
        flush_(loop, [this] { act(Events::write); }),
        limit_(loop, [this] { check_limit(); }) {}
  ~RedisEvents() {
    if (is_gone_ != nullptr) *is_gone_ = true;
  }

  static RedisEvents& of(void* self) { return *static_cast<RedisEvents*>(self); }

  void set(Events interest) {
    if (interest == interest_) return;
    interest_ = interest;
    if (interest == Events::none) return watcher_.stop();
    watcher_.set(interest);
    // An error is reported by the callback.
    static_cast<void>(watcher_.start());
  }

  void want_write() {
    // While connecting, and if a write was incomplete, the socket has to become writable.
    if ((context_.c.flags & REDIS_CONNECTED) == 0 || is_writing_)
      return set(interest_ | Events::write);
    must_flush_ = true;
    if (is_gone_ == nullptr && !flush_.is_started()) flush_.start(Duration::zero());
  }
  void stop_writing() {
    must_flush_ = false;
    flush_.stop();
    set(interest_ & ~Events::write);
  }

  void act(Events events) {
    bool is_gone = false;
    bool* const outer = std::exchange(is_gone_, &is_gone);
    if (has(events, Events::read) || has(events, Events::error)) redisAsyncHandleRead(&context_);
    if (!is_gone && (must_flush_ || has(events, Events::write))) {
      is_writing_ = true;
      must_flush_ = false;
      write();
      if (!is_gone) is_writing_ = false;
    }
    if (!is_gone) {
      is_gone_ = outer;
      // What was sent while hiredis connected or failed.
      if (must_flush_ && outer == nullptr) flush_.start(Duration::zero());
    } else if (outer != nullptr) {
      *outer = true;
    }
  }
  void write() {
    if (send_output()) return;
    const SigpipeBlock block;
    redisAsyncHandleWrite(&context_);
  }
  /// Does what redisAsyncHandleWrite() does for a connection without TLS, and keeps the buffer.
  /// False if hiredis must do it.
  bool send_output() {
#if HIREDIS_MAJOR >= 1
    return false;
#else
    constexpr std::size_t bytes_max = 65'536;  // A larger buffer is not kept.
    char* const output = context_.c.obuf;
    const std::size_t size = sdslen(output);
    const bool is_connected = (context_.c.flags & REDIS_CONNECTED) != 0 && context_.c.err == 0;
    if (!is_connected || size > bytes_max) return false;
    flush_.stop();
    if (size == 0) {
      set(Events::read);
      return true;
    }
    const ssize_t sent = ::send(context_.c.fd, output, size, MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) {
      redisAsyncHandleRead(&context_);  // Reports the error to hiredis.
      return true;
    }
    const std::size_t left = size - (sent < 0 ? 0 : static_cast<std::size_t>(sent));
    if (left > 0) std::memmove(output, output + (size - left), left);
    sdssetlen(output, left);
    output[left] = '\0';
    set(left > 0 ? Events::read | Events::write : Events::read);
    return true;
#endif
  }

  /// Blocks SIGPIPE on this thread, and discards it if it was raised meanwhile.
  class SigpipeBlock {
   public:
    SigpipeBlock() noexcept {
      sigemptyset(&signal_);
      sigaddset(&signal_, SIGPIPE);
      pthread_sigmask(SIG_BLOCK, &signal_, &former_);
    }
    SigpipeBlock(const SigpipeBlock&) = delete;
    SigpipeBlock& operator=(const SigpipeBlock&) = delete;
    ~SigpipeBlock() {
      if (sigismember(&former_, SIGPIPE) == 1) return;
      const int error = errno;
      const timespec no_wait{};
      sigtimedwait(&signal_, nullptr, &no_wait);
      pthread_sigmask(SIG_SETMASK, &former_, nullptr);
      errno = error;
    }

   private:
    sigset_t signal_;
    sigset_t former_;
  };

  void check_limit() {
#if HIREDIS_MAJOR >= 1
    redisAsyncHandleTimeout(&context_);
#endif
  }

  redisAsyncContext& context_;
  Events interest_ = Events::none;
  bool is_writing_ = false;
  bool must_flush_ = false;
  bool* is_gone_ = nullptr;
  FdWatcher watcher_;
  Timer flush_;
  Timer limit_;
};

}  // namespace tambour::adapters

#pragma GCC visibility pop
