// Scenarios of loops: watchers, timers, signals, children, processes and files.
#include "faults/scenarios.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "support/files.h"

namespace tambour::test {
namespace {

using namespace std::chrono_literals;

/// A watcher that counts the bytes that it reads and stores the first error.
class Reader {
 public:
  Reader(EventLoop& loop, int fd, Trigger trigger)
      : watcher_(loop, fd, Events::read, [this](Events events) { on_ready(events); }, trigger) {}

  Error start() {
    const auto started = watcher_.start();
    return started ? Error() : started.error();
  }
  void stop() { watcher_.stop(); }
  void watch(int fd) { watcher_.set(fd, Events::read); }
  [[nodiscard]] bool has(int bytes) const { return error_ || bytes_ >= bytes; }
  [[nodiscard]] int bytes() const { return bytes_; }
  [[nodiscard]] Error error() const { return error_; }

 private:
  void on_ready(Events events) {
    if (watcher_.error()) {
      EXPECT_EQ(events, Events::error);
      EXPECT_FALSE(error_) << "reported twice";
      EXPECT_FALSE(watcher_.is_started());
      error_ = watcher_.error();
      return;
    }
    std::array<char, 64> buffer;
    const auto got = ::read(watcher_.fd(), buffer.data(), buffer.size());
    if (got > 0) bytes_ += static_cast<int>(got);
  }

  FdWatcher watcher_;
  int bytes_ = 0;
  Error error_;
};

Error echo(EventLoop& loop, Trigger trigger) {
  const Ends pipe = open_pipe();
  Reader reader(loop, pipe.near.get(), trigger);
  if (const Error error = reader.start()) return error;
  for (int round = 1; round <= 3; ++round) {
    write_to(pipe.far);
    run_until(loop, [&] { return reader.has(round); }, "what was written");
    if (reader.error()) return reader.error();
    EXPECT_EQ(reader.bytes(), round);
  }
  return {};
}

Error play_edges(EventLoop& loop) { return echo(loop, Trigger::edge); }

/// More changes at once than a small ring has entries.
Error play_many(EventLoop& loop) {
  constexpr std::size_t count = 12;
  std::array<Ends, count> sockets;
  std::array<std::optional<Reader>, count> readers;
  for (std::size_t i = 0; i < count; ++i) {
    sockets[i] = open_socketpair();
    readers[i].emplace(loop, sockets[i].near.get(), i % 2 == 0 ? Trigger::level : Trigger::edge);
    if (const Error error = readers[i]->start()) return error;
  }
  for (int round = 1; round <= 2; ++round) {
    for (std::size_t i = 0; i < count; ++i) {
      write_to(sockets[i].far);
      if (round == 1) continue;
      readers[i]->stop();
      if (const Error error = readers[i]->error() ? Error() : readers[i]->start()) return error;
    }
    for (const auto& reader : readers)
      run_until(loop, [&] { return reader->has(round); }, "what was written");
  }
  for (const auto& reader : readers) {
    if (reader->error()) return reader->error();
  }
  return {};
}

/// Several watchers of one descriptor that start and stop.
Error play_interests(EventLoop& loop) {
  const Ends sockets = open_socketpair();
  Reader reader(loop, sockets.near.get(), Trigger::level);
  if (const Error error = reader.start()) return error;
  for (int round = 1; round <= 2; ++round) {
    bool can_write = false;
    Error error;
    FdWatcher writer(loop, sockets.near.get(), Events::write, [&](Events) {
      error = writer.error();
      can_write = true;
      writer.stop();
    });
    if (const auto started = writer.start(); !started) return started.error();
    run_until(loop, [&] { return can_write; }, "room to write");
    write_to(sockets.far);
    run_until(loop, [&] { return reader.has(round); }, "what was written");
    if (error) return error;
    if (reader.error()) return reader.error();
  }
  return {};
}

/// A descriptor is reused for another file while a duplicate keeps the former file open.
Error play_reuse(EventLoop& loop) {
  Ends former = open_pipe();
  const int number = former.near.get();
  Reader reader(loop, number, Trigger::level);
  if (const Error error = reader.start()) return error;
  write_to(former.far);
  run_until(loop, [&] { return reader.has(1); }, "the first line");
  if (reader.error()) return reader.error();
  const UniqueFd kept = duplicate_above(former.near, number + 1);
  const Ends latter = open_pipe();
  if (::dup3(latter.near.get(), number, O_CLOEXEC | O_NONBLOCK) < 0 && errno == EINVAL)
    ::dup3(latter.near.get(), number, O_CLOEXEC);
  reader.watch(number);
  write_to(former.far);
  write_to(latter.far);
  run_until(loop, [&] { return reader.has(2); }, "the line of the new file");
  for (int iteration = 0; iteration < 3; ++iteration) loop.run_ready();
  write_to(latter.far);
  run_until(loop, [&] { return reader.has(3); }, "the next line of the new file");
  return reader.error();
}

Error play_timers(EventLoop& loop) {
  int calls = 0;
  const auto count = [&calls] { ++calls; };
  std::array<std::optional<Timer>, 20> timers;
  for (auto& timer : timers) timer.emplace(loop, count).start(1ms);
  run_until(loop, [&] { return calls >= 20; }, "each timer");
  Timer repeating(loop, count);
  repeating.start(200us, 200us);
  run_until(loop, [&] { return calls >= 23; }, "the repeating timer");
  return {};
}

Error play_collecting(EventLoop& loop) {
  set_collect_intervals(loop, 1ms, 100us);
  const Error error = echo(loop, Trigger::level);
  set_collect_intervals(loop, 0ms, 0ms);
  return error;
}

/// A thread that calls `f` whenever the loop is about to wait.
template <class F>
class WhenAsleep {
 public:
  WhenAsleep(EventLoop& loop, F f)
      : prepare_(loop, [this] { iterations_.fetch_add(1); }), f_(f), thread_([this] { run(); }) {
    prepare_.start();
  }
  WhenAsleep(const WhenAsleep&) = delete;
  WhenAsleep& operator=(const WhenAsleep&) = delete;
  ~WhenAsleep() {
    over_ = true;
    thread_.join();
  }

 private:
  void run() {
    for (int seen = 0; !over_; std::this_thread::yield()) {
      if (iterations_.load() == seen) continue;
      seen = iterations_.load();
      f_();
    }
  }

  std::atomic<int> iterations_{0};
  std::atomic<bool> over_{false};
  Prepare prepare_;
  F f_;
  std::thread thread_;
};

Error play_bell(EventLoop& loop) {
  int rings = 0;
  Async bell(loop, [&rings] { ++rings; });
  bell.start();
  const WhenAsleep ringer(loop, [&bell] { bell.send(); });
  run_until(loop, [&] { return rings >= 5; }, "the bell");
  return {};
}

Error play_signal(EventLoop& loop) {
  int calls = 0;
  Signal signal(loop, SIGUSR1, [&calls](int) { ++calls; });
  for (int round = 1; round <= 2; ++round) {
    if (const auto started = signal.start(); !started) return started.error();
    ::raise(SIGUSR1);
    run_until(loop, [&] { return calls == round; }, "the signal");
    signal.stop();
  }
  return {};
}

Error wait_for_child(EventLoop& loop, ChildChanges changes) {
  const pid_t pid = ::fork();
  if (pid < 0) std::abort();
  if (pid == 0) ::_exit(3);
  // Also if the constructor of Child throws.
  struct Reaper {
    pid_t pid;
    ~Reaper() { ::waitpid(pid, nullptr, 0); }
  } const reaper{pid};
  ChildStatus status;
  Child child(
      loop, pid,
      [&status](const ChildStatus& reported) {
        EXPECT_EQ(status.pid, 0) << "reported twice";
        status = reported;
      },
      changes);
  Error error;
  if (const auto started = child.start(); !started) {
    error = started.error();
  } else {
    run_until(loop, [&] { return status.pid != 0; }, "the child's end");
    if (status.event == ChildStatus::Event::lost) {
      error = system_error(status.code);
    } else {
      EXPECT_EQ(status.code, 3);
    }
  }
  child.stop();
  if (error) ::waitpid(pid, nullptr, 0);
  EXPECT_EQ(::waitpid(pid, nullptr, WNOHANG), -1) << "the child was left";
  return error;
}

Error play_child(EventLoop& loop) { return wait_for_child(loop, ChildChanges::end); }
Error play_child_by_signal(EventLoop& loop) { return wait_for_child(loop, ChildChanges::all); }

Error play_process(EventLoop& loop) {
  auto spawned = Process::spawn(loop, {.arguments = {"/bin/sh", "-c", "echo text; exit 3"},
                                       .input = Stdio::null(),
                                       .output = Stdio::pipe()});
  Error error = spawned ? Error() : spawned.error();
  if (spawned) {
    const pid_t pid = spawned->pid();
    run_until(loop, [&] { return !spawned->is_running(); }, "the process's end");
    const ChildStatus status = spawned->status().value_or(ChildStatus());
    if (status.event == ChildStatus::Event::lost) {
      error = system_error(status.code);
      ::waitpid(pid, nullptr, 0);
    } else {
      EXPECT_EQ(status.code, 3);
    }
  }
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG | __WALL), -1) << "the process was left";
  return error;
}

Error play_wall_timer(EventLoop& loop) {
  int calls = 0;
  WallTimer once(loop, [&calls] { ++calls; });
  WallTimer again(loop, [&calls] { ++calls; });
  const auto now = std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now());
  if (const auto started = once.start_at(now + 2ms); !started) return started.error();
  if (const auto started = again.start_every(1ms); !started) return started.error();
  run_until(loop, [&] { return calls >= 4 && !once.is_started(); }, "the time of day");
  return {};
}

/// The path of a file that does not exist, in a directory of its own.
class MissingFile {
 public:
  MissingFile() {
    if (::mkdtemp(folder_.data()) == nullptr) std::abort();
    path_ = folder_ + "/file";
  }
  MissingFile(const MissingFile&) = delete;
  MissingFile& operator=(const MissingFile&) = delete;
  ~MissingFile() {
    ::unlink(path_.c_str());
    ::rmdir(folder_.c_str());
  }

  void make() const {
    const UniqueFd unique_fd(::open(path_.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    if (!unique_fd.is_open()) std::abort();
  }
  void remove() const { ::unlink(path_.c_str()); }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string folder_ = "/tmp/tambour-test-XXXXXX";
  std::string path_;
};

/// The last state that the watcher reports must be correct. Before that, it may report that a file
/// does not exist if it could not be checked.
Error play_file_status(EventLoop& loop) {
  const MissingFile file;
  bool exists = false;
  FileStatus status(loop, file.path(),
                    [&](const FileState&, const FileState& now) { exists = now.exists; },
                    {.interval = FileStatusOptions::interval_min});
  if (const auto started = status.start(); !started) return started.error();
  file.make();
  run_until(loop, [&] { return exists; }, "the file");
  file.remove();
  run_until(loop, [&] { return !exists; }, "the end of the file");
  return {};
}

/// A host with poll(2) runs the loop.
Error play_hosted(EventLoop& loop) {
  const auto fd = loop.fd();
  if (!fd) return fd.error();
  const auto host_until = [&](const std::function<bool()>& done, const char* awaited) {
    for (int i = 0; i < 1'000 && !done(); ++i) {
      const TimePoint deadline = loop.next_deadline();
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
      pollfd polled{.fd = *fd, .events = POLLIN, .revents = 0};
      const auto limit_ms = std::clamp<std::int64_t>(left.count(), 0, 10'000);
      if (::poll(&polled, 1, static_cast<int>(limit_ms)) == 0 && limit_ms == 10'000) break;
      loop.run_ready();
    }
    EXPECT_TRUE(done()) << "the host did not see " << awaited;
  };
  const Ends pipe = open_pipe();
  Reader reader(loop, pipe.near.get(), Trigger::level);
  if (const Error error = reader.start()) return error;
  for (int round = 1; round <= 2; ++round) {
    write_to(pipe.far);
    host_until([&] { return reader.has(round); }, "what was written");
    if (reader.error()) return reader.error();
  }
  bool expired = false;
  Timer timer(loop, [&expired] { expired = true; });
  timer.start(1ms);
  host_until([&] { return expired; }, "the timer");
  return {};
}

Error play_embedded(EventLoop& outer) {
  const auto inner = EventLoop::open({.backend = outer.backend().kind});
  if (!inner) return inner.error();
  EmbeddedLoop embedded(outer, **inner);
  if (const auto started = embedded.start(); !started) return started.error();
  const Ends pipe = open_pipe();
  Reader reader(**inner, pipe.near.get(), Trigger::level);
  if (const Error error = reader.start()) return error;
  for (int round = 1; round <= 2; ++round) {
    write_to(pipe.far);
    run_until(outer, [&] { return reader.has(round); }, "what the inner loop reads");
    if (reader.error()) return reader.error();
  }
  bool expired = false;
  Timer timer(**inner, [&expired] { expired = true; });
  timer.start(1ms);
  run_until(outer, [&] { return expired; }, "the inner loop's timer");
  return {};
}

Task<> write_and_read(std::string path, Error& error) {
  const auto note = [&error](const auto& outcome) {
    if (!outcome && !error) error = outcome.error();
    return outcome.has_value();
  };
  auto file = co_await File::open(path, FileMode::replace);
  if (!note(file)) co_return;
  const std::string text(10'000, 'x');
  if (!note(co_await file->write_at(text, 0)) || !note(co_await file->sync())) co_return;
  if (!note(co_await file->write_at(Buffer(text), 0))) co_return;
  std::string back(20'000, '\0');
  const auto got = co_await file->read_at(std::as_writable_bytes(std::span(back)), 0);
  if (!note(got)) co_return;
  EXPECT_EQ(*got, text.size());
  EXPECT_TRUE(back.starts_with(text));
  const auto size = co_await file->size();
  EXPECT_EQ(note(size) ? *size : text.size(), text.size());
  note(co_await file->truncate(1));
}

/// Several files concurrently.
Error play_files(EventLoop& loop) {
  const MissingFile file;
  Error error;
  {
    TaskScope scope(loop);
    // Allocations of the tasks throw.
    scope.set_exception_handler(
        [&error](const std::exception_ptr&) { error = system_error(ENOMEM); });
    for (int i = 0; i < 3; ++i) scope.spawn(write_and_read(file.path() + std::to_string(i), error));
    run_until(loop, [&] { return scope.empty(); }, "what was read");
  }
  for (int i = 0; i < 3; ++i) ::unlink((file.path() + std::to_string(i)).c_str());
  return error;
}

Task<Error> nap() {
  const auto slept = co_await sleep_for(1ms);
  co_return slept ? Error() : slept.error();
}

/// Waits until a stop is requested.
Task<Error> wait_for_bytes(int fd) {
  const auto events = co_await wait_ready(fd, Events::read);
  EXPECT_FALSE(events) << "there are none";
  co_return events || events.error() == system_error(ECANCELED) ? Error() : events.error();
}

Task<> wait_in_every_way(int fd, Error& error) {
  const auto [first, second] = co_await when_all(nap(), nap());
  EXPECT_FALSE(first || second) << "a timer cannot fail";
  const auto any = co_await when_any(nap(), wait_for_bytes(fd));
  if (any.index() == 1) error = std::get<1>(any);
  const auto limited = co_await timeout(1ms, wait_for_bytes(fd));
  if (limited) {
    error = *limited;
  } else {
    EXPECT_EQ(limited.error(), system_error(ETIMEDOUT));
  }
}

/// Tasks that wait for several things and stop those that are no longer needed.
Error play_tasks(EventLoop& loop) {
  const Ends pipe = open_pipe();
  Error error;
  TaskScope scope(loop);
  // Allocations of the tasks throw.
  scope.set_exception_handler(
      [&error](const std::exception_ptr&) { error = system_error(ENOMEM); });
  scope.spawn(wait_in_every_way(pipe.near.get(), error));
  run_until(loop, [&] { return scope.empty(); }, "the end of the waits");
  return error;
}

/// Calls on the threads of a new pool.
Error play_workers(EventLoop& loop) {
  WorkerPool pool(2);
  Error error;
  int calls = 0;
  TaskScope scope(loop);
  // Allocations of the tasks throw.
  scope.set_exception_handler(
      [&error](const std::exception_ptr&) { error = system_error(ENOMEM); });
  for (int i = 0; i < 5; ++i) {
    scope.spawn([](WorkerPool& with, int& count, Error& reported) -> Task<> {
      const auto got = co_await with.run([] { return 1; });
      if (!got) reported = got.error();
      count += got.value_or(0);
    }(pool, calls, error));
  }
  run_until(loop, [&] { return scope.empty(); }, "a worker");
  EXPECT_EQ(error ? 5 : calls, 5);
  return error;
}

}  // namespace

Error play_echo(EventLoop& loop) { return echo(loop, Trigger::level); }

Error play_posting(EventLoop& loop) {
  int tasks = 0;
  std::atomic<int> posted{0};
  const auto post = [&] {
    if (posted.fetch_add(1) < 5) loop.post([&tasks] { ++tasks; });
  };
  const WhenAsleep poster(loop, post);
  run_until(loop, [&] { return tasks >= 5; }, "what was posted");
  return {};
}

const std::vector<Scenario>& all_scenarios() {
  static const std::vector<Scenario> scenarios{
      {"echo", play_echo},
      {"edges", play_edges},
      {"many", play_many},
      {"interests", play_interests},
      {"reuse", play_reuse},
      {"timers", play_timers},
      {"collecting", play_collecting},
      {"posting", play_posting},
      {"bell", play_bell},
      {"signal", play_signal},
      {"child", play_child},
      {"child_by_signal", play_child_by_signal},
      {"process", play_process},
      {"wall_timer", play_wall_timer},
      {"file_status", play_file_status},
      {"embedded", play_embedded},
      {"hosted", play_hosted},
      {"datagrams", play_datagrams},
      {"tasks", play_tasks},
      {"workers", play_workers},
      {"channels", play_channels},
      {"shared_channels", play_shared_channels},
      {"signal_set", play_signal_set},
      {"calls_on_another_loop", play_calls_on_another_loop},
      {"handles", play_handles},
      {"files", play_files},
      {"names", play_names},
      {"watcher", play_watcher},
      {"streams", play_streams},
      {"connections", play_connections},
      {"unix", play_unix},
      {"unix_server", play_unix_server},
      {"pipes", play_pipes},
  };
  return scenarios;
}

}  // namespace tambour::test
