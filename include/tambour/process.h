// Child processes: started without fork(2), with pipes, awaited, and ended.
//
// The trap: a child that is given a pipe for its output blocks when the pipe is full. Read the
// output while the child runs, not after wait().
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <coroutine>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <tambour/callback.h>
#include <tambour/child.h>
#include <tambour/clock.h>
#include <tambour/operation.h>
#include <tambour/pipe.h>
#include <tambour/result.h>
#include <tambour/task.h>

namespace tambour {

class EventLoop;
class ProcessState;

/// What a child's standard input, output or error is.
class Stdio {
 public:
  /// The parent's.
  static constexpr Stdio inherit() noexcept { return {Kind::inherit, -1}; }
  /// /dev/null.
  static constexpr Stdio null() noexcept { return {Kind::null, -1}; }
  /// A pipe, whose other end is a stream of the Process.
  static constexpr Stdio pipe() noexcept { return {Kind::pipe, -1}; }
  /// A copy of `fd`, which stays the caller's and must be open until spawn() returns.
  static constexpr Stdio descriptor(int fd) noexcept { return {Kind::descriptor, fd}; }
  /// For error_output: what the output is, as `2>&1` of a shell.
  static constexpr Stdio same_as_output() noexcept { return {Kind::same_as_output, -1}; }

 private:
  friend class ProcessState;
  enum class Kind : std::uint8_t { inherit, null, pipe, descriptor, same_as_output };
  constexpr Stdio(Kind kind, int fd) noexcept : kind_(kind), fd_(fd) {}

  Kind kind_;
  int fd_;
};

/// Which process group (setpgid(2)) and session (setsid(2)) a child belongs to.
enum class ProcessGroup : std::uint8_t {
  inherited,  ///< The parent's: a Ctrl-C of the terminal reaches both.
  own,        ///< A new group, which the child leads.
  session,    ///< A new session without a terminal, and a new group.
};

struct PassedDescriptor {
  int fd = -1;  ///< Of the parent, which keeps it.
  int as = -1;  ///< Its number in the child; 3 or more.
};

/// setrlimit(2).
struct ResourceLimit {
  int resource = 0;  ///< RLIMIT_NOFILE, RLIMIT_AS, ...
  rlim_t soft = RLIM_INFINITY;
  rlim_t hard = RLIM_INFINITY;
};

/// credentials(7). The supplementary groups are replaced, also by none.
struct ProcessCredentials {
  uid_t user = 0;
  gid_t group = 0;
  std::vector<gid_t> supplementary_groups{};
};

struct ProcessOptions {
  /// argv. The first is the program, unless `program` says otherwise.
  std::vector<std::string> arguments{};
  /// A path, absolute or relative to `working_directory`. Without a slash it is looked for in the
  /// PATH of the parent, as execvp(3) does.
  std::string program{};
  /// "NAME=value" each. Not set: the parent's; see current_environment().
  std::optional<std::vector<std::string>> environment{};
  /// A variable that is added to the environment: the child's pid in decimal, as LISTEN_PID of
  /// sd_listen_fds(3).
  std::string pid_variable{};
  /// Empty: the parent's.
  std::string working_directory{};

  Stdio input = Stdio::inherit();
  Stdio output = Stdio::inherit();
  Stdio error_output = Stdio::inherit();
  /// The child gets these and the three above. All other descriptors are closed, also those of
  /// other code that are not close-on-exec.
  std::vector<PassedDescriptor> descriptors{};

  ProcessGroup group = ProcessGroup::inherited;
  std::vector<ResourceLimit> limits{};
  std::optional<ProcessCredentials> credentials{};
  /// The child blocks no signal and handles all by default. If set, signals that the parent ignores
  /// (SIGHUP under nohup(1)) stay ignored, as with execve(2).
  bool keep_ignored_signals = false;

  /// After this time terminate() is called, with `grace`. Zero: no limit.
  Duration timeout = Duration::zero();
  Duration grace = std::chrono::seconds(5);
};

/// The environment of this process, to be changed and passed in ProcessOptions. Not while another
/// thread changes it (setenv(3)).
std::vector<std::string> current_environment();

/// A child process.
///
/// Ownership: destroying a Process that runs sends SIGKILL, closes its streams, and returns at
/// once; its loop reaps it. To leave it running, use release(). In a forked child of this process,
/// destroying a Process of the parent sends nothing.
/// Thread: its loop's. If it is destroyed after its loop, the killed process may stay a zombie.
/// Loop: one that runs, or was killed and is not reaped yet, keeps EventLoop::run() going.
/// Descriptors: one or two for each that runs, and one for each pipe.
///
/// The pid is never used after the process was reaped: signals go through a pidfd
/// (pidfd_send_signal(2)) where the kernel has it. As with Child, SIGCHLD must not be ignored, and
/// other code must not wait for the process.
class Process final {
 public:
  using Function = Callback<void(const ChildStatus&)>;

  /// Starts a program; blocks until the child executes it. Safe with threads. Fails with the errno
  /// value of the step that failed, in the parent or in the child, and then no child is left:
  /// EINVAL for no arguments, a zero byte in a string, or a bad descriptor number; ENOENT, EACCES,
  /// ENOEXEC and others of execve(2); ENOENT for the working directory; EPERM for credentials,
  /// limits; EBADF; EMFILE; EAGAIN; ENOMEM. ENOTSUP in a simulation. Throws std::bad_alloc.
  static Result<Process> spawn(EventLoop& loop, const ProcessOptions& options);

  /// Moved from, or default: none.
  Process() noexcept = default;
  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;
  ~Process();

  /// 0 for none.
  [[nodiscard]] pid_t pid() const noexcept;
  /// It has not been reaped yet.
  [[nodiscard]] bool running() const noexcept;
  /// How it ended; nothing while it runs.
  [[nodiscard]] std::optional<ChildStatus> status() const noexcept;
  /// ProcessOptions::timeout has ended it, or tried to.
  [[nodiscard]] bool timed_out() const noexcept;

  /// The parent's ends of pipes; not open unless the option was Stdio::pipe(). Close `input()` to
  /// end the child's input. They belong to the Process, but may be moved out of it.
  [[nodiscard]] PipeStream& input() noexcept;
  [[nodiscard]] PipeStream& output() noexcept;
  [[nodiscard]] PipeStream& error_output() noexcept;

  class Wait;
  /// Waits until it has ended; by several tasks if need be. ECANCELED if the task was asked to
  /// stop, or the Process destroyed. The status `lost` says that other code has taken the status.
  ///
  ///   const auto status = co_await process.wait();
  [[nodiscard]] Wait wait() noexcept;

  /// The same as a callback: invoked once, in an iteration of the loop, also if it has ended
  /// already. Replaces the former one. May destroy the Process.
  void on_exit(Function function) noexcept;

  /// kill(2). ESRCH if it has ended; EINVAL; EPERM.
  Result<> send_signal(int number) noexcept;
  /// The same for its process group. EINVAL unless `group` was `own` or `session`.
  Result<> send_signal_to_group(int number) noexcept;

  /// SIGTERM, and SIGKILL if it has not ended after `grace`; zero: SIGKILL at once. To the whole
  /// group if the child leads one. No effect on one that has ended.
  void terminate(Duration grace = std::chrono::seconds(5)) noexcept;

  /// Leaves the process running; the caller waits for it (Child). Returns its pid.
  pid_t release() noexcept;

 private:
  explicit Process(ProcessState* state) noexcept : state_(state) {}

  ProcessState* state_ = nullptr;
};

class [[nodiscard]] Process::Wait final : private Ready {
 public:
  explicit Wait(ProcessState* state) noexcept : Ready(&run), state_(state) {}
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;

  [[nodiscard]] bool await_ready() noexcept;
  template <HasTaskContext Promise>
  void await_suspend(std::coroutine_handle<Promise> awaiting) {
    awaiting_ = awaiting;
    enlist();
    stop_.emplace(awaiting.promise().context().stop, Stop{*this});
  }
  Result<ChildStatus> await_resume() const noexcept { return outcome_; }

 private:
  friend class ProcessState;
  struct Stop {
    Wait& self;
    void operator()() const noexcept { self.cancel(); }
  };
  static void run(Ready& ready);
  void enlist() noexcept;
  void cancel() noexcept;

  ProcessState* state_;
  Result<ChildStatus> outcome_ = std::unexpected(system_error(ECANCELED));
  std::coroutine_handle<> awaiting_;
  std::optional<std::stop_callback<Stop>> stop_;
};

inline Process::Wait Process::wait() noexcept { return Wait(state_); }

}  // namespace tambour
