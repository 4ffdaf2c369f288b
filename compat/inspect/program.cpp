// Program and ProgramLoop; the functions that the drop-ins call.
#include "inspect/program.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <future>
#include <string_view>
#include <thread>
#include <utility>

#include <tambour/http/server.h>
#include <tambour/loop/event_loop.h>
#include <tambour/net/endpoint.h>

#include "inspect/pages.h"
#include "inspector/state.h"

namespace tambour::inspect {
namespace {

/// Blocks all signals in this thread while it exists: a new thread inherits the mask, and signals
/// of the program are for its own threads.
class SignalsBlocked {
 public:
  SignalsBlocked() noexcept {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

/// The address in the environment, in which "%p" is the number of the process.
std::string address_of_environment() {
  const char* const text = ::secure_getenv("TAMBOUR_INSPECT");
  std::string address = text != nullptr ? text : "";
  const std::size_t at = address.find("%p");
  if (at != std::string::npos) address.replace(at, 2, std::to_string(::getpid()));
  return address;
}

void warn(const std::string& address, std::string_view reason) noexcept {
  std::fprintf(stderr, "tambour: TAMBOUR_INSPECT=%s has no effect in process %d: %.*s\n",
               address.c_str(), static_cast<int>(::getpid()), static_cast<int>(reason.size()),
               reason.data());
}

/// What the thread removes at the end of the process.
struct SocketFile {
  std::string path;
  pid_t process = 0;
};
SocketFile& socket_file() {
  static auto* const file = new SocketFile;
  return *file;
}

[[gnu::destructor]] void remove_socket_file() {
  const SocketFile& file = socket_file();
  if (file.process == ::getpid()) ::unlink(file.path.c_str());
}

}  // namespace

bool ProgramLoop::post(Callback<void()> question) {
  const std::lock_guard lock(mutex_);
  if (loop_ == nullptr) return false;
  if (questions_ == nullptr) questions_ = std::make_unique<Questions>();
  questions_->push_back(std::move(question));
  is_asked.store(true, std::memory_order_release);
  calls_.wake(loop_);
  return true;
}

void ProgramLoop::answer() noexcept {
  if (!is_asked.load(std::memory_order_acquire)) return;
  std::unique_ptr<Questions> questions;
  {
    const std::lock_guard lock(mutex_);
    is_asked.store(false, std::memory_order_relaxed);
    questions.swap(questions_);
  }
  if (questions == nullptr) return;
  for (auto& question : *questions) question();
}

void ProgramLoop::forget_questions() noexcept {
  is_asked.store(false, std::memory_order_relaxed);
  static_cast<void>(questions_.release());
}

void ProgramLoop::note_close() noexcept {
  std::unique_ptr<Questions> questions;
  const std::lock_guard lock(mutex_);
  loop_ = nullptr;
  questions.swap(questions_);
}

Program& Program::get() {
  static auto* const program = new Program;
  return *program;
}

Program::Program() { ::pthread_atfork(&before_fork, &after_fork_in_parent, &after_fork_in_child); }

void Program::before_fork() noexcept { get().mutex_.lock(); }
void Program::after_fork_in_parent() noexcept { get().mutex_.unlock(); }
void Program::after_fork_in_child() noexcept {
  Program& program = get();
  program.is_started_ = false;
  for (const auto& loop : program.loops_) loop->forget_questions();
  program.mutex_.unlock();
}

compat::LoopRecord* Program::open(const compat::LoopCalls& calls, void* loop) {
  std::shared_ptr<ProgramLoop> opened;
  {
    const std::lock_guard lock(mutex_);
    const bool is_libev = std::string_view(calls.library) == "libev";
    const int number = is_libev ? libev_loops_++ : libevent_loops_++;
    opened = std::make_shared<ProgramLoop>(
        mutex_, calls, loop, std::string(calls.library) + '/' + std::to_string(number));
    loops_.push_back(opened);
  }
  start();
  return opened.get();
}

void Program::close(ProgramLoop& loop) noexcept {
  loop.note_close();
  std::shared_ptr<ProgramLoop> closed;
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(loops_, &loop, &std::shared_ptr<ProgramLoop>::get);
  if (found == loops_.end()) return;
  closed = std::move(*found);
  loops_.erase(found);
  // The drop-in notes the end of the callback in which the loop was destroyed.
  if (closed->running_since_ns != 0) closed_in_callbacks_.push_back(std::move(closed));
}

ProgramLoops Program::loops() const {
  const std::lock_guard lock(mutex_);
  return loops_;
}

void Program::start() {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(is_started_, true)) return;
  }
  const std::string address = address_of_environment();
  std::promise<bool> listens;
  const SignalsBlocked blocked;
  std::thread([&] { serve(address, [&](bool success) { listens.set_value(success); }); }).detach();
  // Until it listens, because the program may be about to give up rights that this needs.
  listens.get_future().wait();
}

void Program::serve(const std::string& address, const std::function<void(bool)>& done) {
  bool is_done = false;
  const auto finish = [&](bool success) {
    if (!std::exchange(is_done, true)) done(success);
  };
  const std::string text = address;
  try {
    ::pthread_setname_np(::pthread_self(), "tambour-inspect");
    const auto at = Endpoint::parse(text);
    if (!at) {
      warn(text, at.error().message());
      return finish(false);
    }
    if (at->is_ip() && !inspector::is_loopback(*at)) {
      warn(text, "it must be a loopback address, or unix:/path");
      return finish(false);
    }
    auto* const loop = new EventLoop;
    auto observed = inspector::observe(*loop, "inspector");
    auto server =
        http::Server::listen(*loop, *at, make_pages(*this, std::move(observed)).handler());
    if (!server) {
      warn(text, server.error().message());
      return finish(false);
    }
    if (text.starts_with("unix:/"))
      socket_file() = {.path = text.substr(std::strlen("unix:")), .process = ::getpid()};
    finish(true);
    loop->run();
  } catch (const std::exception& exception) {
    warn(text, exception.what());
    finish(false);
  }
}

namespace {

using compat::LoopCalls;
using compat::LoopRecord;

ProgramLoop& loop_of(LoopRecord* record) noexcept { return *static_cast<ProgramLoop*>(record); }

LoopRecord* open_loop(const LoopCalls& calls, void* loop) noexcept {
  try {
    return Program::get().open(calls, loop);
  } catch (const std::exception&) {
    return nullptr;
  }
}

void restart(LoopRecord* /*record*/) noexcept {
  try {
    Program::get().start();
  } catch (const std::exception& exception) {
    warn("", exception.what());
  }
}

constexpr compat::ObserverCalls observer_calls = {
    .open = &open_loop,
    .close = [](LoopRecord* record) noexcept { Program::get().close(loop_of(record)); },
    .after_fork = &restart,
    .answer = [](LoopRecord* record) noexcept { loop_of(record).answer(); },
    .note_call =
        [](LoopRecord* record, const void* function, std::int64_t took_ns) noexcept {
          loop_of(record).note_call(function, took_ns);
        },
    .note_iteration =
        [](LoopRecord* record, std::int64_t took_ns) noexcept {
          loop_of(record).note_iteration(took_ns);
        },
};

}  // namespace
}  // namespace tambour::inspect

extern "C" [[gnu::visibility("default")]] const tambour::compat::ObserverCalls*
tambour_observe_1() noexcept {
  return &tambour::inspect::observer_calls;
}
