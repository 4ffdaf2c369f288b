// Starts a program: a child made by clone(2) with CLONE_VFORK prepares descriptors, signals, limits
// and credentials, calls execve(2), and returns its error in the shared memory.
#include "process/launch.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

#include "base/failure.h"
#include "base/system_call.h"

// The sanitizers keep state in memory that a child must not change in its parent. With them, the
// child gets a copy of the memory.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TAMBOUR_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define TAMBOUR_SANITIZED 1
#endif
#endif

namespace tambour::detail::process {
namespace {

constexpr int first_signal = 1;
constexpr int signal_end = 65;
/// The size of the kernel's sigset_t, which is smaller than that of the C library.
constexpr std::size_t kernel_sigset_size = 8;

/// Shared by parent and child. The rest of the mapping is the child's stack.
struct Shared {
  Launch* launch;
  std::uint64_t ignored;  ///< The signals that stay ignored; bit 0 is signal 1.
  int error;              ///< An errno value, set by the child.
  pid_t parent;
};
constexpr std::size_t mapping_size = std::size_t{64} * 1024;

/// A system call of the child. It bypasses the C library's wrappers, because they know about the
/// parent's threads (setuid(2) changes the ids of all threads), and because the sanitizers replace
/// them. Returns 0 or an errno value.
template <class... Args>
int child_call(long number, Args... args) noexcept {
  return ::syscall(number, args...) < 0 ? errno : 0;
}

int descriptor_of(const char* name) noexcept {
  int fd = 0;
  for (; *name != '\0'; ++name) {
    if (*name < '0' || *name > '9') return -1;
    fd = fd * 10 + (*name - '0');
  }
  return fd;
}

/// Used if close_range(2) is missing: before Linux 5.11 (CLOSE_RANGE_CLOEXEC), or in a sandbox.
int set_close_on_exec_by_proc(unsigned first, unsigned last) noexcept {
  const auto folder = static_cast<int>(
      ::syscall(SYS_openat, AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0));
  if (folder < 0) return errno;
  // struct linux_dirent64: inode, offset, record length, type, name.
  constexpr std::size_t size_at = 16;
  constexpr std::size_t name_at = 19;
  alignas(8) std::array<char, 2048> entries;
  long size = 0;
  while ((size = ::syscall(SYS_getdents64, folder, entries.data(), entries.size())) > 0) {
    for (std::size_t at = 0; at < static_cast<std::size_t>(size);) {
      std::uint16_t entry_size = 0;
      std::memcpy(&entry_size, entries.data() + at + size_at, sizeof entry_size);
      const int fd = descriptor_of(entries.data() + at + name_at);
      if (fd >= 0 && static_cast<unsigned>(fd) >= first && static_cast<unsigned>(fd) <= last)
        ::syscall(SYS_fcntl, fd, F_SETFD, FD_CLOEXEC);
      at += entry_size;
    }
  }
  const int error = size < 0 ? errno : 0;
  ::syscall(SYS_close, folder);
  return error;
}

int reset_signal_handlers(std::uint64_t ignored) noexcept {
  // All zeros is SIG_DFL in the kernel's struct sigaction on all architectures.
  alignas(8) constexpr std::array<char, 64> to_default{};
  for (int number = first_signal; number < signal_end; ++number) {
    if ((ignored >> (number - first_signal) & 1) != 0) continue;
    // Fails for SIGKILL and SIGSTOP, which cannot have a handler.
    child_call(SYS_rt_sigaction, number, to_default.data(), nullptr, kernel_sigset_size);
  }
  return 0;
}

/// Duplicates `fd` to a number that is at least `from` and not a target, and sets `from` to the
/// number after it. Returns -1 and sets errno on failure.
int duplicate(int fd, const std::vector<Launch::PassedFd>& targets, int& from) noexcept {
  for (;;) {
    const auto copy = static_cast<int>(::syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, from));
    if (copy < 0) return -1;
    from = copy + 1;
    if (std::ranges::find(targets, copy, &Launch::PassedFd::as) == targets.end()) return copy;
    ::syscall(SYS_close, copy);
  }
}

int pass_descriptors(Launch& launch) noexcept {
  // Duplicate all descriptors first, because a target may be another's source.
  int from = STDERR_FILENO + 1;
  for (Launch::PassedFd& passed : launch.passed) {
    passed.fd = duplicate(passed.fd, launch.passed, from);
    if (passed.fd < 0) return errno;
  }
  if (const int error = set_close_on_exec(STDERR_FILENO + 1, ~0U)) return error;
  for (const Launch::PassedFd& passed : launch.passed) {
    // dup3(2) clears close-on-exec of the copy.
    if (const int error = child_call(SYS_dup3, passed.fd, passed.as, 0)) return error;
  }
  return 0;
}

int enter_group(Launch::Group group) noexcept {
  switch (group) {
    case Launch::Group::inherited:
      return 0;
    case Launch::Group::new_group:
      return child_call(SYS_setpgid, 0, 0);
    case Launch::Group::new_session:
      return child_call(SYS_setsid);
  }
  return 0;
}

int set_limits(const std::vector<Launch::Limit>& limits) noexcept {
  for (const Launch::Limit& limit : limits) {
    if (const int error = child_call(SYS_prlimit64, 0, limit.resource, &limit.limits, nullptr))
      return error;
  }
  return 0;
}

int take_credentials(const Launch::Credentials* credentials) noexcept {
  if (credentials == nullptr) return 0;
  const gid_t group = credentials->group;
  const uid_t user = credentials->user;
  if (const int error =
          child_call(SYS_setgroups, credentials->groups.size(), credentials->groups.data()))
    return error;
  if (const int error = child_call(SYS_setresgid, group, group, group)) return error;
  return child_call(SYS_setresuid, user, user, user);
}

int enter_cgroup(int procs) noexcept {
  // "0" is the writing process. The kernel checks the permissions of the process that has opened
  // the file.
  return procs < 0 ? 0 : child_call(SYS_write, procs, "0", 1);
}

int set_attributes(const Launch& launch) noexcept {
  if (launch.has_umask) ::syscall(SYS_umask, launch.umask);
  if (launch.has_nice) {
    if (const int error = child_call(SYS_setpriority, PRIO_PROCESS, 0, launch.nice)) return error;
  }
  return launch.is_subreaper ? child_call(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) : 0;
}

/// The kernel clears the signal when the credentials change.
int set_death_signal(int number, pid_t parent) noexcept {
  if (number == 0) return 0;
  if (const int error = child_call(SYS_prctl, PR_SET_PDEATHSIG, number, 0, 0, 0)) return error;
  // If the parent has ended already, the signal is never sent.
  return ::syscall(SYS_getppid) == parent ? 0 : ESRCH;
}

void write_process_id(char* to) noexcept {
  if (to == nullptr) return;
  std::array<char, 20> digits;
  std::size_t count = 0;
  for (long left = ::syscall(SYS_getpid); left > 0; left /= 10)
    digits[count++] = static_cast<char>('0' + left % 10);
  while (count > 0) *to++ = digits[--count];
  *to = '\0';
}

/// Like execvp(3). Returns the errno value of the failure.
int execute(const Launch& launch) noexcept {
  int error = ENOENT;
  for (const std::string& program : launch.programs) {
    const int failed =
        child_call(SYS_execve, program.c_str(), launch.arguments.data(), launch.environment.data());
    switch (failed) {
      case EACCES:  // Reported in preference to ENOENT in a later directory.
        error = EACCES;
        break;
      case ENOENT:
      case ENOTDIR:
        break;
      default:
        return failed;
    }
  }
  return error;
}

int become(Shared& shared) noexcept {
  Launch& launch = *shared.launch;
  reset_signal_handlers(shared.ignored);
  if (const int error = enter_group(launch.group)) return error;
  if (const int error = enter_cgroup(launch.cgroup_procs)) return error;
  if (const int error = pass_descriptors(launch)) return error;
  if (const int error = set_limits(launch.limits)) return error;
  if (const int error = set_attributes(launch)) return error;
  if (const int error = take_credentials(launch.credentials)) return error;
  if (const int error = set_death_signal(launch.death_signal, shared.parent)) return error;
  if (launch.working_directory != nullptr) {
    if (const int error = child_call(SYS_chdir, launch.working_directory)) return error;
  }
  write_process_id(launch.process_id);
  constexpr std::uint64_t none = 0;
  child_call(SYS_rt_sigprocmask, SIG_SETMASK, &none, nullptr, kernel_sigset_size);
  return execute(launch);
}

int run_child(void* argument) {
  auto& shared = *static_cast<Shared*>(argument);
  shared.error = become(shared);
  constexpr int status = 127;
  return status;
}

std::uint64_t ignored_signals() noexcept {
  std::uint64_t ignored = 0;
  for (int number = first_signal; number < signal_end; ++number) {
    struct sigaction found{};
    if (::sigaction(number, nullptr, &found) == 0 && found.sa_handler == SIG_IGN)
      ignored |= std::uint64_t{1} << (number - first_signal);
  }
  return ignored;
}

/// Memory that parent and child share even if the child has a copy of all other memory.
class Mapping {
 public:
  Mapping() noexcept {
    if (const auto planned = base::planned_outcome(base::Call::mmap)) {
      errno = -*planned;
      return;
    }
    start_ =
        ::mmap(nullptr, mapping_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (is_open()) ::munmap(start_, mapping_size);
  }
  [[nodiscard]] bool is_open() const noexcept { return start_ != MAP_FAILED; }
  [[nodiscard]] void* start() const noexcept { return start_; }
  [[nodiscard]] void* end() const noexcept { return static_cast<char*>(start_) + mapping_size; }

 private:
  void* start_ = MAP_FAILED;
};

}  // namespace

int set_close_on_exec(unsigned first, unsigned last) noexcept {
  constexpr unsigned set_flag = 1U << 2;  // CLOSE_RANGE_CLOEXEC, missing in older headers.
  if (::syscall(SYS_close_range, first, last, set_flag) == 0) return 0;
  return set_close_on_exec_by_proc(first, last);
}

bool reap(pid_t pid, int flags) noexcept {
  siginfo_t info{};
  return base::uninterrupted(base::Call::waitid, ::waitid, P_PID, static_cast<id_t>(pid), &info,
                             WEXITED | flags) == 0 &&
         info.si_pid == pid;
}

Result<Launched> launch(Launch& subject) noexcept {
  const Mapping mapping;
  if (!mapping.is_open()) return base::failure(errno);
  auto* const shared = new (mapping.start())
      Shared{.launch = &subject, .ignored = 0, .error = 0, .parent = ::getpid()};
  if (subject.keeps_ignored_signals) shared->ignored = ignored_signals();
  // No exit signal: execve(2) sets it to SIGCHLD. A child that fails before execve(2) is reaped
  // only with __WALL, so the program does not see it.
  int flags = CLONE_VFORK | CLONE_PIDFD;
#ifndef TAMBOUR_SANITIZED
  flags |= CLONE_VM;
#endif
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  int pidfd = -1;
  const int pid = base::system_call(base::Call::clone, ::clone, &run_child, mapping.end(), flags,
                                    shared, &pidfd);
  const int error = pid < 0 ? errno : shared->error;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  UniqueFd owned(pidfd);
  if (error == 0) return Launched{.pid = pid, .pidfd = std::move(owned)};
  if (pid > 0) reap(pid, __WALL);
  return base::failure(error);
}

}  // namespace tambour::detail::process
