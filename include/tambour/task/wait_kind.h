// What a task awaits, as dumps of tasks show it: see <tambour/task/dump.h>.
#pragma once

#include <cstdint>
#include <string_view>

#include <tambour/base/clock.h>
#include <tambour/base/cxx23.h>

#pragma GCC visibility push(default)

namespace tambour {

/// The kind of a wait.
enum class WaitKind : std::uint8_t {
  unknown,    ///< The task has not waited yet, or the library was built without dumps of tasks.
  running,    ///< The task does not wait: it runs now.
  task,       ///< Another task.
  tasks,      ///< The tasks of when_all(), when_any(), select(), timeout() and others.
  sleep,      ///< A time: sleep_for(), sleep_until(), Interval::tick().
  readiness,  ///< wait_ready().
  read,       ///< Data of a stream, or datagrams of a socket.
  write,      ///< Space in the send buffer of a stream or socket.
  accept,     ///< A connection of a listener.
  connect,    ///< The end of connect(2).
  event,      ///< TaskEvent::wait().
  mutex,      ///< TaskMutex::lock().
  semaphore,  ///< TaskSemaphore::acquire().
  send,       ///< Space in a channel.
  receive,    ///< An item of a channel, a broadcast, a watch or a SignalSet.
  join,       ///< The end of the tasks of a scope, or of a spawned task.
  process,    ///< The end of a child process.
  file,       ///< An operation on a file.
  worker,     ///< A call on a thread of a WorkerPool.
  loop,       ///< A task on another loop: run_on().
  callback,   ///< A Completion: from_callback().
  other,      ///< An awaitable of the program, or of an adapter.
};

/// The name of the enumerator.
[[nodiscard]] std::string_view name_of(WaitKind kind) noexcept;

/// A wait: its kind, and a descriptor, a time, or the address of an object, as one word.
class WaitNote {
  static constexpr unsigned value_bits = 56;

 public:
  /// Of a time in nanoseconds: two years.
  static constexpr std::int64_t time_max = (std::int64_t{1} << value_bits) - 1;

  constexpr WaitNote() noexcept = default;
  /// A kind alone, or with a descriptor or the address of an object.
  constexpr explicit WaitNote(WaitKind kind) noexcept : WaitNote(kind, std::uint64_t{0}) {}
  constexpr WaitNote(WaitKind kind, int fd) noexcept
      : WaitNote(kind, std::uint64_t{static_cast<std::uint32_t>(fd)}) {}
  WaitNote(WaitKind kind, const void* object) noexcept
      : WaitNote(kind, std::uint64_t{reinterpret_cast<std::uintptr_t>(object)}) {}
  /// At most time_max; Duration::max() if the time is not known.
  constexpr WaitNote(WaitKind kind, Duration time) noexcept
      : WaitNote(kind, time.count() < 0          ? std::uint64_t{0}
                       : time.count() > time_max ? std::uint64_t{time_max}
                                                 : static_cast<std::uint64_t>(time.count())) {}

  /// The parts: the value is the descriptor, the address, or the time in nanoseconds.
  [[nodiscard]] constexpr WaitKind kind() const noexcept {
    return static_cast<WaitKind>(word_ >> value_bits);
  }
  [[nodiscard]] constexpr std::uint64_t value() const noexcept {
    return word_ & ((std::uint64_t{1} << value_bits) - 1);
  }

 private:
  /// An address may have a tag in its highest byte, which is dropped.
  constexpr WaitNote(WaitKind kind, std::uint64_t value) noexcept
      : word_(std::uint64_t{static_cast<std::uint8_t>(kind)} << value_bits |
              (value & ((std::uint64_t{1} << value_bits) - 1))) {}

  std::uint64_t word_ = 0;
};

}  // namespace tambour

#pragma GCC visibility pop
