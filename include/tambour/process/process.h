// Child processes: spawned without fork(2), connected by pipes, awaited and terminated.
//
// If a child's output is a pipe, the child blocks when the pipe is full: read the output while the
// child runs, not after wait().
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <coroutine>
#include <cstdint>
#include <optional>
#include <source_location>
#include <stop_token>
#include <string>
#include <vector>

#include <tambour/base/callback.h>
#include <tambour/base/clock.h>
#include <tambour/base/result.h>
#include <tambour/detail/operation.h>
#include <tambour/events/child.h>
#include <tambour/net/pipe.h>
#include <tambour/task/task.h>

namespace tambour::detail::process {
class ProcessState;
}  // namespace tambour::detail::process

#pragma GCC visibility push(default)

namespace tambour {

class EventLoop;

/// The standard input, output or error of a child.
class Stdio {
 public:
  /// Inherits the parent's file descriptor.
  static constexpr Stdio inherit() noexcept { return {Kind::inherit, -1}; }
  /// /dev/null.
  static constexpr Stdio null() noexcept { return {Kind::null, -1}; }
  /// A pipe; the parent's end is a PipeStream of the Process.
  static constexpr Stdio pipe() noexcept { return {Kind::pipe, -1}; }
  /// A duplicate of `fd`, which the caller still owns and which must be open until spawn() returns.
  static constexpr Stdio descriptor(int fd) noexcept { return {Kind::descriptor, fd}; }
  /// For error_output: the same file as the output, like `2>&1` in a shell.
  static constexpr Stdio same_as_output() noexcept { return {Kind::same_as_output, -1}; }

 private:
  friend class detail::process::ProcessState;
  enum class Kind : std::uint8_t { inherit, null, pipe, descriptor, same_as_output };
  constexpr Stdio(Kind kind, int fd) noexcept : kind_(kind), fd_(fd) {}

  Kind kind_;
  int fd_;
};

/// The process group (setpgid(2)) and session (setsid(2)) of a child.
enum class ProcessGroup : std::uint8_t {
  inherited,  ///< The parent's group: Ctrl-C in the terminal signals both.
  new_group,  ///< A new group that the child leads.
  session,    ///< A new session without a controlling terminal, and a new group.
};

/// A file descriptor that the child gets besides the standard streams.
struct PassedDescriptor {
  int fd = -1;  ///< The parent's file descriptor; the parent keeps it.
  int as = -1;  ///< The file descriptor in the child; 3 or more.
};

/// A resource limit of the child: setrlimit(2).
struct ResourceLimit {
  int resource = 0;  ///< RLIMIT_NOFILE, RLIMIT_AS, ...
  rlim_t soft = RLIM_INFINITY;
  rlim_t hard = RLIM_INFINITY;
};

/// Credentials of the child: credentials(7). The supplementary groups are replaced, even if the
/// list is empty.
struct ProcessCredentials {
  uid_t user = 0;
  gid_t group = 0;
  std::vector<gid_t> supplementary_groups{};
};

/// The program that Process::spawn() starts, and its environment.
struct ProcessOptions {
  /// argv. The first element is the program unless `program` is set.
  std::vector<std::string> arguments{};
  /// A path, absolute or relative to `working_directory`. A name without a slash is searched in the
  /// parent's PATH, as execvp(3) does.
  std::string program{};
  /// "NAME=value" strings. If not set, the parent's environment; see current_environment().
  std::optional<std::vector<std::string>> environment{};
  /// The name of an environment variable that is set to the child's pid in decimal, like LISTEN_PID
  /// of sd_listen_fds(3).
  std::string pid_variable{};
  /// Empty: the parent's working directory.
  std::string working_directory{};

  Stdio input = Stdio::inherit();
  Stdio output = Stdio::inherit();
  Stdio error_output = Stdio::inherit();
  /// File descriptors that the child gets in addition to the three above. All others are closed,
  /// including those of other code that are not close-on-exec.
  std::vector<PassedDescriptor> descriptors{};

  ProcessGroup group = ProcessGroup::inherited;
  /// When the child ends, sends SIGKILL to the rest of the group that it leads, before wait()
  /// completes. `group` must be `new_group` or `session`. Processes that have left the group are
  /// not killed.
  bool kill_group_at_exit = false;
  std::vector<ResourceLimit> limits{};
  std::optional<ProcessCredentials> credentials{};
  /// The directory of a control group, for example "/sys/fs/cgroup/jobs", that the child joins
  /// before it executes the program: cgroups(7). spawn() fails with ENOENT if there is none, and
  /// with EACCES or EBUSY if the parent may not place processes there. The group must exist already
  /// and is not removed. It must not be frozen: spawn() would block until it is thawed.
  std::string cgroup{};
  /// The file mode creation mask, 0 to 0777: umask(2). Not set: the parent's.
  std::optional<mode_t> umask{};
  /// The nice value, -20 to 19: setpriority(2). Not set: the parent's. Lowering it needs a
  /// privilege (EACCES).
  std::optional<int> nice{};
  /// The signal that the child gets when the thread that calls spawn() ends: PR_SET_PDEATHSIG. 0:
  /// none. The signal is sent at the end of that thread, not of the process: spawn the child on a
  /// thread that lives as long as the program, such as the main thread. A program with the
  /// set-user-ID bit gets no signal. Processes that the child starts do not inherit the setting.
  int parent_death_signal = 0;
  /// If the parent of a descendant of the child ends, the descendant becomes a child of the child
  /// instead of init(1): PR_SET_CHILD_SUBREAPER. For this process itself, see
  /// set_child_subreaper().
  bool subreaper = false;
  /// By default, the child blocks no signal and all dispositions are the default. If set, signals
  /// that the parent ignores (SIGHUP under nohup(1)) stay ignored, as with execve(2).
  bool keep_ignored_signals = false;

  /// After this time terminate() is called with `grace`. Zero: no time limit.
  Duration timeout = Duration::zero();
  Duration grace = std::chrono::seconds(5);
};

/// Returns a copy of this process's environment, to be modified and passed in ProcessOptions. Must
/// not run while another thread modifies the environment (setenv(3)).
std::vector<std::string> current_environment();

/// If enabled, descendants of this process whose parent has ended become children of this process
/// instead of init(1): PR_SET_CHILD_SUBREAPER. Start a Child with `any_child`, which reaps them;
/// otherwise they stay zombies. Applies to the process, not to the thread. Not inherited by
/// children. Fails with EINVAL before Linux 3.4.
[[nodiscard]] Result<> set_child_subreaper(bool enabled) noexcept;

/// A child process.
///
/// Ownership: destroying a Process whose child is running sends SIGKILL, closes its streams, and
/// returns at once; its loop reaps the child. If terminate() was called, what is left of the group
/// gets SIGKILL too. Other processes of the group survive a child that has ended by itself, unless
/// `kill_group_at_exit` is set. To leave the child running, use release(). In a
/// forked copy of this process, destroying a Process of the parent sends no signal.
/// Thread: must be used on the loop's thread, which is checked. If it is destroyed after its loop,
/// the killed child may stay a zombie.
/// Loop: a child that is running, or was killed and not yet reaped, keeps EventLoop::run() from
/// returning.
/// Descriptors: a running child uses one or two file descriptors, and one more for each pipe.
/// Groups: a child that leads a process group and has ended stays a zombie, with a file descriptor,
/// until the Process is destroyed: only then can the rest of the group be signalled safely. With
/// `kill_group_at_exit` it is reaped at once. If an `any_child` watcher (Child) is started in this
/// program, it reaps the zombie; the group can then be signalled on Linux 6.9 or later.
///
/// The pid is never used after the child was reaped: signals are sent through a pidfd
/// (pidfd_send_signal(2)) if the kernel supports it. As with Child, SIGCHLD must not be ignored,
/// and other code must not wait for the process.
class Process final {
 public:
  /// The callback of on_exit(), which gets the status.
  using Function = Callback<void(const ChildStatus&)>;

  /// Starts a program; blocks until the child has executed it. Safe in multithreaded programs. On
  /// failure no child is left, and the error is the errno value of the step that failed, in the
  /// parent or in the child: EINVAL if there are no arguments, a string contains a zero byte, or a
  /// file descriptor number is invalid; ENOENT, EACCES, ENOEXEC and others of execve(2); ENOENT for
  /// the working directory; EPERM for credentials or limits; EACCES for the nice value; ESRCH if
  /// the parent has ended before `parent_death_signal` was set; EBADF; EMFILE; EAGAIN; ENOMEM;
  /// ENOTSUP in a simulation. Throws std::bad_alloc.
  [[nodiscard]] static Result<Process> spawn(
      EventLoop& loop, const ProcessOptions& options,
      std::source_location created_at = std::source_location::current());

  /// A Process without a child, like one that was moved from.
  Process() noexcept = default;
  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;
  ~Process();

  /// 0 if there is no child.
  [[nodiscard]] pid_t pid() const noexcept;
  /// True until the child has ended and its loop has taken its status.
  [[nodiscard]] bool is_running() const noexcept;
  /// How the child ended; nullopt while it runs.
  [[nodiscard]] std::optional<ChildStatus> status() const noexcept;
  /// True if ProcessOptions::timeout has expired, and the child was sent the signals of
  /// terminate().
  [[nodiscard]] bool has_timed_out() const noexcept;

  /// The parent's ends of the pipes; open only if the option was Stdio::pipe(). Closing `input()`
  /// ends the child's input. The Process owns the streams, but they may be moved from.
  [[nodiscard]] PipeStream& input() noexcept;
  [[nodiscard]] PipeStream& output() noexcept;
  [[nodiscard]] PipeStream& error_output() noexcept;

  class Wait;
  /// Waits until the child has ended; may be awaited by several tasks. Fails with ECANCELED if the
  /// task is asked to stop or the Process is destroyed. If other code has consumed the child's
  /// status, the result is `lost`.
  ///
  ///   const auto status = co_await process.wait();
  [[nodiscard]] Wait wait() noexcept;

  /// Sets a callback that is invoked once when the child has ended, always from an iteration of the
  /// loop, even if the child has ended already. Replaces the previous callback. The callback may
  /// destroy the Process.
  void on_exit(Function function) noexcept;

  /// Sends a signal to the child: kill(2). Fails with ESRCH if it has ended, EINVAL or EPERM.
  [[nodiscard]] Result<> send_signal(int number) noexcept;
  /// Sends a signal to the process group of the child, also after the child has ended. Fails with
  /// EINVAL unless `group` was `new_group` or `session`, with EPERM, and with ESRCH if the ended
  /// child has been reaped (see Groups) and no member is left. Succeeds if the ended child is all
  /// that is left of the group.
  [[nodiscard]] Result<> send_signal_to_group(int number) noexcept;

  /// Sends SIGTERM and, if the child has not ended after `grace`, SIGKILL. If `grace` is zero,
  /// sends SIGKILL at once. If the child leads a group, signals the whole group, also what is left
  /// of it after the child has ended; a SIGKILL that is due then does not keep EventLoop::run()
  /// from returning. Otherwise no effect if the child has ended.
  void terminate(Duration grace = std::chrono::seconds(5)) noexcept;

  /// Leaves the child running and returns its pid; the caller must wait for it (Child).
  pid_t release() noexcept;

 private:
  explicit Process(detail::process::ProcessState* state) noexcept : state_(state) {}

  detail::process::ProcessState* state_ = nullptr;
};

class [[nodiscard]] Process::Wait final : private detail::ReadyNode {
 public:
  explicit Wait(detail::process::ProcessState* state) noexcept : ReadyNode(&run), state_(state) {}
  Wait(Wait&& other) noexcept : ReadyNode(&run), state_(other.state_) {
    detail::check_not_awaited(other.awaiting_, "Process::wait()");
  }
  Wait& operator=(Wait&&) = delete;
  ~Wait() = default;

  [[nodiscard]] bool await_ready() noexcept;
  template <HasTaskContext Promise>
  void await_suspend(std::coroutine_handle<Promise> awaiting,
                     std::source_location at = std::source_location::current()) {
    note_wait(awaiting, WaitNote(WaitKind::process), at);
    awaiting_ = awaiting;
    set_created_at(awaiting.promise().context().spawned_at);
    enlist();
    stop_.emplace(awaiting.promise().context().stop, Stop{*this});
  }
  [[nodiscard]] Result<ChildStatus> await_resume() const noexcept { return outcome_; }

 private:
  friend class detail::process::ProcessState;
  struct Stop {
    Wait& self;
    void operator()() const noexcept { self.cancel(); }
  };
  static void run(ReadyNode& ready);
  void enlist() noexcept;
  void cancel() noexcept;

  detail::process::ProcessState* state_;
  Result<ChildStatus> outcome_ = std::unexpected(system_error(ECANCELED));
  std::coroutine_handle<> awaiting_;
  std::optional<std::stop_callback<Stop>> stop_;
};

inline Process::Wait Process::wait() noexcept { return Wait(state_); }

}  // namespace tambour

#pragma GCC visibility pop
