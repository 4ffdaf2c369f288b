// ProcessState: pipes, spawning, signals to the child or its group, time limits, and the end that
// tasks await.
#include "process/process_state.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include <tambour/loop/event_loop.h>

#include "backend/system.h"
#include "base/failure.h"
#include "base/system_call.h"
#include "events/child_table.h"

namespace tambour::detail::process {
namespace {

bool holds_zero(std::string_view text) noexcept { return text.contains('\0'); }

/// Returns the paths that execvp(3) would try.
std::vector<std::string> paths_of(const std::string& program) {
  if (program.contains('/')) return {program};
  const char* const found = std::getenv("PATH");
  std::string_view left = found != nullptr ? found : "/bin:/usr/bin";
  std::vector<std::string> paths;
  for (;;) {
    const std::size_t end = left.find(':');
    const std::string_view folder = left.substr(0, end);
    std::string& path = paths.emplace_back(folder.empty() ? "." : folder);
    path.append("/").append(program);
    if (end == std::string_view::npos) return paths;
    left.remove_prefix(end + 1);
  }
}

void point_to(std::vector<std::string>& strings, std::vector<char*>& pointers) {
  for (std::string& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
}

}  // namespace

struct ProcessState::Preparation {
  Launch launch;
  std::vector<std::string> arguments;
  std::vector<std::string> environment;
  Launch::Credentials credentials{};
  std::vector<UniqueFd> opened;  ///< The child's ends of pipes, and /dev/null.

  explicit Preparation(const ProcessOptions& options)
      : arguments(options.arguments),
        environment(options.environment ? *options.environment : current_environment()) {
    launch.programs = paths_of(options.program.empty() ? arguments.front() : options.program);
    if (!options.pid_variable.empty()) {
      const std::string place(std::numeric_limits<pid_t>::digits10 + 2, '\0');
      environment.push_back(options.pid_variable + '=' + place);
    }
    point_to(arguments, launch.arguments);
    point_to(environment, launch.environment);
    if (!options.pid_variable.empty())
      launch.process_id = environment.back().data() + options.pid_variable.size() + 1;
    if (!options.working_directory.empty())
      launch.working_directory = options.working_directory.c_str();
    for (const PassedDescriptor& passed : options.descriptors)
      launch.passed.push_back({.fd = passed.fd, .as = passed.as});
    for (const ResourceLimit& limit : options.limits)
      launch.limits.push_back({limit.resource, {.rlim_cur = limit.soft, .rlim_max = limit.hard}});
    if (options.credentials) {
      credentials = {.user = options.credentials->user,
                     .group = options.credentials->group,
                     .groups = options.credentials->supplementary_groups};
      launch.credentials = &credentials;
    }
    if (options.group == ProcessGroup::new_group) launch.group = Launch::Group::new_group;
    if (options.group == ProcessGroup::session) launch.group = Launch::Group::new_session;
    launch.keeps_ignored_signals = options.keep_ignored_signals;
    launch.death_signal = options.parent_death_signal;
    launch.is_subreaper = options.subreaper;
    launch.has_umask = options.umask.has_value();
    launch.umask = options.umask.value_or(0);
    launch.has_nice = options.nice.has_value();
    launch.nice = options.nice.value_or(0);
  }
};

ProcessState::ProcessState(EventLoop& loop, const ProcessOptions& options,
                           std::source_location created_at)
    : core_(&loop::core_of(loop)),
      parent_(::getpid()),
      leads_group_(options.group != ProcessGroup::inherited),
      grace_(options.grace),
      child_(loop, 0, [this](const ChildStatus& status) { ended(status); }),
      deadline_(loop, [this] { deadline_passed(); }),
      exit_call_(*this),
      created_at_(created_at) {
  core_->attach();
}

ProcessState::~ProcessState() {
  end_waits();
  exit_call_.unlink();
  child_.stop();
  stop_deadline();
  core_->defer_delete(on_exit_.release());
  core_->detach();
  if (!status_ && !is_abandoned_) return;  // It was released, or not started.
  if (leads_group_) {
    leader_.reap();
  } else if (!status_) {
    // The loop is being destroyed before it has reaped a child that was killed. Usually the child
    // has already ended.
    reap(pid(), WNOHANG);
  }
}

Result<> ProcessState::check(const ProcessOptions& options) noexcept {
  bool is_good = !options.arguments.empty() && !holds_zero(options.program) &&
                 !holds_zero(options.working_directory) && !holds_zero(options.pid_variable) &&
                 !holds_zero(options.cgroup) && options.umask.value_or(0) <= 0777;
  for (const std::string& argument : options.arguments) is_good = is_good && !holds_zero(argument);
  if (options.environment) {
    for (const std::string& variable : *options.environment)
      is_good = is_good && !holds_zero(variable);
  }
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  for (const PassedDescriptor& passed : options.descriptors) {
    is_good =
        is_good && passed.as > STDERR_FILENO && static_cast<rlim_t>(passed.as) < files.rlim_cur;
  }
  if (options.group == ProcessGroup::inherited && options.kill_group_at_exit) is_good = false;
  if (!is_good) return base::failure(EINVAL);
  return {};
}

Result<> ProcessState::open_stream(EventLoop& loop, Stdio stdio, int as, PipeStream& stream,
                                   Preparation& preparation) {
  int fd = stdio.fd_;
  switch (stdio.kind_) {
    case Stdio::Kind::inherit:
      return {};
    case Stdio::Kind::descriptor:
      break;
    case Stdio::Kind::null: {
      const mode_t unused = 0;
      fd = base::uninterrupted(base::Call::file_open, ::open, "/dev/null", O_RDWR | O_CLOEXEC,
                               unused);
      if (fd < 0) return base::failure(errno);
      UniqueFd owned(fd);
      preparation.opened.push_back(std::move(owned));
      break;
    }
    case Stdio::Kind::pipe: {
      std::array<int, 2> fds{};
      if (base::system_call(base::Call::pipe, ::pipe2, fds.data(), O_CLOEXEC) != 0)
        return base::failure(errno);
      const bool child_reads = as == STDIN_FILENO;
      fd = fds[child_reads ? 0 : 1];
      UniqueFd owned(fd);
      stream = PipeStream(loop, fds[child_reads ? 1 : 0]);
      preparation.opened.push_back(std::move(owned));
      break;
    }
    case Stdio::Kind::same_as_output:
      if (as != STDERR_FILENO) return base::failure(EINVAL);
      fd = STDOUT_FILENO;
      for (const Launch::PassedFd& passed : preparation.launch.passed) {
        if (passed.as == STDOUT_FILENO) fd = passed.fd;
      }
      break;
  }
  preparation.launch.passed.push_back({.fd = fd, .as = as});
  return {};
}

Result<> ProcessState::open_cgroup(const ProcessOptions& options, Preparation& preparation) {
  if (options.cgroup.empty()) return {};
  const std::string path = options.cgroup + "/cgroup.procs";
  const mode_t unused = 0;
  UniqueFd opened(base::uninterrupted(base::Call::file_open, ::open, path.c_str(),
                                      O_WRONLY | O_CLOEXEC, unused));
  if (!opened.is_open()) return base::failure(errno);
  preparation.launch.cgroup_procs = opened.get();
  preparation.opened.push_back(std::move(opened));
  return {};
}

Result<> ProcessState::open_streams(EventLoop& loop, const ProcessOptions& options,
                                    Preparation& preparation) {
  auto opened = open_stream(loop, options.input, STDIN_FILENO, input, preparation);
  if (opened) opened = open_stream(loop, options.output, STDOUT_FILENO, output, preparation);
  if (opened)
    opened = open_stream(loop, options.error_output, STDERR_FILENO, error_output, preparation);
  return opened;
}

Result<> ProcessState::launch(EventLoop& loop, const ProcessOptions& options) {
  Preparation preparation(options);
  if (auto opened = open_cgroup(options, preparation); !opened) return opened;
  if (auto opened = open_streams(loop, options, preparation); !opened) return opened;
  const events::ChildTable::Launching launching;
  auto launched = process::launch(preparation.launch);
  if (!launched) return std::unexpected(launched.error());
  pidfd_ = std::move(launched->pidfd);
  child_ = Child(loop, launched->pid, [this](const ChildStatus& status) { ended(status); });
  if (leads_group_) {
    using AtExit = events::GroupLeader::AtExit;
    const bool kills = options.kill_group_at_exit;
    leader_.enter(launched->pid, pidfd_.get(), kills ? AtExit::kill_group : AtExit::keep_group);
  }
  if (auto started = child_.start(); !started) {
    leader_.leave();
    // ECHILD: the kernel killed the child before it executed the program, or reaped it because
    // SIGCHLD is ignored. After any other error the child has not been reaped, and the pid is still
    // its own.
    if (started.error() != system_error(ECHILD))
      ::kill(leads_group_ ? -launched->pid : launched->pid, SIGKILL);
    reap(launched->pid, __WALL);
    return started;
  }
  if (options.timeout > Duration::zero()) start_deadline(options.timeout);
  return {};
}

Result<ProcessState*> ProcessState::spawn(EventLoop& loop, const ProcessOptions& options,
                                          std::source_location created_at) {
  loop::Core& core = loop::core_of(loop);
  core.check_thread();
  if (&core.backend().system() != &backend::kernel()) return base::failure(ENOTSUP);
  if (auto checked = check(options); !checked) return std::unexpected(checked.error());
  auto state = std::unique_ptr<ProcessState>(new ProcessState(loop, options, created_at));
  if (auto launched = state->launch(loop, options); !launched)
    return std::unexpected(launched.error());
  return state.release();
}

Result<> ProcessState::send_signal(int number) noexcept {
  if (status_ || parent_ != ::getpid()) return base::failure(ESRCH);
  if (pidfd_.is_open()) {
    if (::syscall(SYS_pidfd_send_signal, pidfd_.get(), number, nullptr, 0) == 0) return {};
    // A sandbox may refuse pidfd_send_signal(2), but not kill(2). If the program lacks permission
    // to signal the child, both fail with EPERM.
    if (errno != ENOSYS && errno != EPERM) return base::failure(errno);
  }
  return events::ChildTable::send_signal(child_, number);
}

Result<> ProcessState::send_signal_to_group(int number) noexcept {
  if (!leads_group_) return base::failure(EINVAL);
  if (parent_ != ::getpid()) return base::failure(ESRCH);
  return leader_.send_signal(number);
}

void ProcessState::send_to_all(int number) noexcept {
  if (leads_group_ && send_signal_to_group(number)) return;
  static_cast<void>(send_signal(number));
}

void ProcessState::start_deadline(Duration delay) noexcept {
  stop_deadline();
  deadline_.start(delay);
  // wait() has completed, and the rest of the group may have ended too, which no event reports.
  if (!status_) return;
  core_->drop_reference();
  is_unreferenced_ = true;
}

void ProcessState::stop_deadline() noexcept {
  deadline_.stop();
  if (std::exchange(is_unreferenced_, false)) core_->add_reference();
}

void ProcessState::terminate(Duration grace) noexcept {
  if (status_ && !leads_group_) return;
  const bool at_once = grace <= Duration::zero();
  send_to_all(at_once ? SIGKILL : SIGTERM);
  if (!child_.is_started() && !status_) return;
  if (core_->closed()) return;
  is_terminating_ = true;
  if (at_once) {
    stop_deadline();
  } else {
    start_deadline(grace);
  }
}

void ProcessState::deadline_passed() noexcept {
  stop_deadline();
  if (is_terminating_) return send_to_all(SIGKILL);
  timed_out_ = true;
  terminate(grace_);
}

void ProcessState::ended(const ChildStatus& status) {
  status_ = status;
  // What terminate() has not ended of the group still gets SIGKILL.
  const bool kills_rest = leads_group_ && is_terminating_ && deadline_.is_started();
  if (!leads_group_) pidfd_.reset();
  if (kills_rest && !is_abandoned_) {
    core_->drop_reference();
    is_unreferenced_ = true;
  } else {
    stop_deadline();
  }
  if (is_abandoned_) {
    delete this;
    return;
  }
  end_waits();
  if (on_exit_) on_exit_(status);  // May delete this.
}

void ProcessState::end_waits() noexcept {
  while (auto* const link = waits_.front()) {
    link->unlink();
    auto& wait = *static_cast<Process::Wait*>(link);
    wait.stop_.reset();
    wait.state_ = nullptr;
    if (status_) wait.outcome_ = *status_;
    if (!core_->closed()) core_->queue(wait);
  }
}

void ProcessState::on_exit(Process::Function function) noexcept {
  core_->defer_delete(on_exit_.release());
  on_exit_ = std::move(function);
  if (status_) core_->queue(exit_call_);
}

void ProcessState::ExitCall::run(detail::ReadyNode& ready) {
  ProcessState& state = static_cast<ExitCall&>(ready).state;
  const ChildStatus status = *state.status_;
  if (state.on_exit_) state.on_exit_(status);  // May delete `state`.
}

void ProcessState::abandon() noexcept {
  core_->defer_delete(on_exit_.release());
  on_exit_ = {};
  exit_call_.unlink();
  end_waits();
  input.close();
  output.close();
  error_output.close();
  if (!status_ || is_terminating_) terminate(Duration::zero());
  is_abandoned_ = parent_ == ::getpid();
  if (status_ || !is_abandoned_ || !child_.is_started()) {
    delete this;
    return;
  }
  core_->owned().push_back(static_cast<detail::LoopOwned&>(*this));
}

pid_t ProcessState::release() noexcept {
  const pid_t released = pid();
  delete this;
  return released;
}

}  // namespace tambour::detail::process
