// Each system call fails once with each error that it may return.
#include <array>
#include <cerrno>
#include <cstddef>
#include <string_view>

#include <gtest/gtest.h>

#include "faults/faults.h"
#include "faults/sweep.h"
#include "support/scale.h"

namespace tambour::calls_test {
namespace {

using test::Call;
using test::Faults;

struct Failure {
  Call call;
  int error;
  bool is_reported;  ///< Whether the program may see the error; otherwise the library must handle
                     ///< it.
};

constexpr Failure failures[] = {
    {Call::accept, EAGAIN, false},
    {Call::accept, ECONNABORTED, false},
    {Call::accept, EINTR, false},
    {Call::accept, EMFILE, false},
    {Call::accept, ENFILE, false},
    {Call::accept, ENOBUFS, false},
    {Call::accept, ENOMEM, false},
    {Call::accept, EPERM, false},
    {Call::bind, EACCES, true},
    {Call::bind, EADDRINUSE, true},
    {Call::chmod, EPERM, true},
    {Call::clone, EAGAIN, true},
    {Call::clone, ENOMEM, true},
    {Call::connect, EADDRNOTAVAIL, true},
    {Call::connect, ECONNREFUSED, true},
    {Call::connect, EINTR, false},
    {Call::connect, ENETUNREACH, true},
    {Call::dup, EMFILE, true},
    {Call::dup, EINTR, false},
    {Call::epoll_add, ENOMEM, true},
    {Call::epoll_add, ENOSPC, true},
    {Call::epoll_create, EMFILE, true},
    {Call::epoll_create, ENFILE, true},
    {Call::epoll_create, ENOMEM, true},
    {Call::epoll_modify, ENOMEM, true},
    {Call::epoll_pwait2, EINTR, false},
    {Call::epoll_pwait2, ENOSYS, false},
    {Call::epoll_pwait2, EPERM, false},
    {Call::epoll_wait, EINTR, false},
    {Call::eventfd, EMFILE, true},
    {Call::eventfd, ENFILE, true},
    {Call::eventfd, ENOMEM, true},
    {Call::eventfd, ENODEV, true},
    {Call::eventfd_read, EAGAIN, false},
    {Call::eventfd_read, EINTR, false},
    {Call::eventfd_write, EINTR, false},
    {Call::file_allocate, ENOSPC, true},
    {Call::file_allocate, EINTR, false},
    {Call::file_change, EPERM, true},
    {Call::file_copy, ENOSPC, true},
    {Call::file_copy, EXDEV, false},
    {Call::file_copy, EINTR, false},
    {Call::file_link, EMLINK, true},
    {Call::file_list, EIO, true},
    {Call::file_make_directory, ENOSPC, true},
    {Call::file_open, EMFILE, true},
    {Call::file_open, ENOSPC, true},
    {Call::file_open, EINTR, false},
    {Call::file_read, EIO, true},
    {Call::file_read, EINTR, false},
    {Call::file_read_cached, EAGAIN, false},
    {Call::file_read_cached, EINTR, false},
    {Call::file_read_cached, EIO, false},
    {Call::file_read_cached, EOPNOTSUPP, false},
    {Call::file_read_link, EIO, true},
    {Call::file_remove, EBUSY, true},
    {Call::file_rename, EIO, true},
    {Call::file_seek, ESPIPE, true},
    {Call::file_size, EIO, true},
    {Call::file_status, EACCES, true},
    {Call::file_sync, EIO, true},
    {Call::file_sync, ENOSPC, true},
    {Call::file_truncate, EIO, true},
    {Call::file_truncate, EINTR, false},
    {Call::file_write, ENOSPC, true},
    {Call::file_write, EDQUOT, true},
    {Call::file_write, EINTR, false},
    {Call::flock, EINTR, false},
    {Call::flock, ENOLCK, true},
    {Call::fstatat, EACCES, true},
    {Call::getsockname, ENOBUFS, true},
    {Call::getsockopt, ENOPROTOOPT, true},
    {Call::inotify_add, ENOSPC, false},
    {Call::inotify_add, ENOMEM, false},
    {Call::inotify_create, EMFILE, false},
    {Call::inotify_create, ENFILE, false},
    {Call::inotify_create, ENOMEM, false},
    {Call::inotify_read, EAGAIN, false},
    {Call::inotify_read, EINTR, false},
    {Call::listen, EADDRINUSE, true},
    {Call::mmap, ENOMEM, true},
    {Call::nanosleep, EINTR, false},
    {Call::pidfd_open, EMFILE, false},
    {Call::pidfd_open, ENFILE, false},
    {Call::pidfd_open, ENOMEM, false},
    {Call::pidfd_open, ENODEV, false},
    {Call::pidfd_open, ENOSYS, false},
    {Call::pidfd_open, EPERM, false},
    {Call::pipe, EMFILE, true},
    {Call::pipe, ENFILE, true},
    {Call::poll, EINTR, false},
    {Call::poll, ENOMEM, false},
    {Call::ppoll, EINTR, false},
    {Call::ppoll, ENOMEM, false},
    {Call::pselect, EINTR, false},
    {Call::pselect, ENOMEM, false},
    {Call::pselect, EBADF, false},
    {Call::read, EAGAIN, false},
    {Call::read, EINTR, false},
    {Call::read, EIO, true},
    {Call::recv, EAGAIN, false},
    {Call::recv, ECONNRESET, true},
    {Call::recv, EINTR, false},
    {Call::recv, ENOMEM, true},
    {Call::recv, ETIMEDOUT, true},
    {Call::recvmmsg, EAGAIN, false},
    {Call::recvmmsg, EINTR, false},
    {Call::recvmmsg, ECONNREFUSED, true},
    {Call::recvmmsg, ENOMEM, true},
    {Call::recvmsg, EAGAIN, false},
    {Call::recvmsg, EINTR, false},
    {Call::recvmsg, ECONNREFUSED, true},
    {Call::recvmsg, ENOMEM, true},
    {Call::recvmsg, ECONNRESET, true},
    {Call::ring_completion, ECANCELED, false},
    {Call::ring_completion, ENOBUFS, true},
    {Call::ring_completion, ENOMEM, true},
    {Call::ring_completion, ENOSPC, true},
    {Call::ring_enter, EAGAIN, false},
    {Call::ring_enter, EBUSY, false},
    {Call::ring_enter, EINTR, false},
    {Call::ring_enter, EBADR, false},
    {Call::ring_open, EINVAL, false},
    {Call::ring_open, EMFILE, true},
    {Call::ring_open, ENFILE, true},
    {Call::ring_open, ENOMEM, true},
    {Call::ring_open, ENOSYS, true},
    {Call::ring_open, EPERM, true},
    {Call::ring_register, ENOMEM, false},
    {Call::send, EAGAIN, false},
    {Call::send, ECONNRESET, true},
    {Call::send, EINTR, false},
    {Call::send, ENOBUFS, true},
    {Call::send, EPIPE, true},
    {Call::sendmmsg, EAGAIN, true},
    {Call::sendmmsg, EINTR, false},
    {Call::sendmmsg, ENOBUFS, true},
    {Call::sendmsg, EAGAIN, true},
    {Call::sendmsg, EINTR, false},
    {Call::sendmsg, ENOBUFS, true},
    {Call::sendmsg, EPIPE, true},
    {Call::setsockopt, ENOMEM, true},
    {Call::shutdown, ENOTCONN, true},
    {Call::socket, EMFILE, true},
    {Call::socket, ENFILE, true},
    {Call::socket, ENOBUFS, true},
    {Call::socket, ENOMEM, true},
    {Call::socketpair, EMFILE, true},
    {Call::socketpair, ENFILE, true},
    {Call::stat, EIO, false},
    {Call::stat, ENOMEM, false},
    {Call::statfs, EIO, false},
    {Call::thread_create, EAGAIN, true},
    {Call::timerfd_create, EMFILE, true},
    {Call::timerfd_create, ENFILE, true},
    {Call::timerfd_create, ENODEV, true},
    {Call::timerfd_create, ENOMEM, true},
    {Call::timerfd_read, EAGAIN, false},
    {Call::timerfd_read, ECANCELED, false},
    {Call::timerfd_read, EINTR, false},
    {Call::timerfd_set, ECANCELED, false},
    {Call::wait_timer_create, EMFILE, false},
    {Call::wait_timer_create, EPERM, false},
    {Call::wait_timer_set, EPERM, false},
    {Call::waitid, ECHILD, true},
    {Call::waitid, EINTR, false},
    {Call::write, EAGAIN, false},
    {Call::write, EINTR, false},
    {Call::write, EIO, true},
    {Call::write, EPIPE, true},
};

/// The limit of occurrences to try: calls that depend on the clock have no last occurrence.
constexpr unsigned nth_max = 25;

class Calls : public test::Sweep {
 protected:
  /// Runs the scenario for each occurrence of one failure, injected by `plan`, until there are no
  /// more.
  template <class Plan>
  void sweep(int error, bool is_reported, Plan&& plan) {
    for (unsigned nth = 1; nth <= nth_max; ++nth) {
      SCOPED_TRACE(testing::Message() << "occurrence " << nth);
      Faults faults;
      const Error reported = play([&] { plan(faults, nth); }, [&] { faults.clear(); });
      if (reported) {
        EXPECT_TRUE(is_reported) << reported.message();
        EXPECT_EQ(reported, system_error(error)) << reported.message();
      }
      if (!faults.hit() || HasFailure()) return;
      // Sanitizers find in some of the later occurrences what they find in all of them.
      if (test::sanitized && nth >= 4) nth += 2;
    }
  }
};

TEST_P(Calls, may_fail_once) {
  std::array<bool, detail::base::call_count> occurs{};
  {
    const Faults none;
    EXPECT_FALSE(play([] {}, [] {}));
    for (const Failure& failure : failures)
      occurs[static_cast<std::size_t>(failure.call)] = none.count(failure.call) != 0;
  }
  for (const Failure& failure : failures) {
    if (!occurs[static_cast<std::size_t>(failure.call)]) continue;
    // A rename that the kernel has performed cannot be repeated; the kernel reports ECANCELED and
    // EINTR only for operations that it has not.
    if (failure.call == Call::ring_completion && scenario().name == std::string_view("names"))
      continue;
    SCOPED_TRACE(testing::Message() << "call " << static_cast<int>(failure.call) << ": "
                                    << system_error(failure.error).message());
    sweep(failure.error, failure.is_reported,
          [&](Faults& faults, unsigned nth) { faults.fail(failure.call, nth, failure.error); });
    if (HasFailure()) return;
  }
}

TEST_P(Calls, that_submit_entries_may_accept_fewer) {
  // The other backends have a ring for files.
  if (options().backend != BackendKind::io_uring && scenario().name != std::string_view("files") &&
      scenario().name != std::string_view("names"))
    GTEST_SKIP() << "no ring";
  for (const unsigned count : {0U, 1U, 2U}) {
    sweep(0, false, [&](Faults& faults, unsigned nth) { faults.take_only(count, nth); });
  }
}

TEST_P(Calls, that_are_multishot_may_end) {
  if (options().backend != BackendKind::io_uring) GTEST_SKIP() << "no ring";
  sweep(0, false, [](Faults& faults, unsigned nth) { faults.end_multishot(nth); });
}

TAMBOUR_ON_EACH_BACKEND(Calls);

}  // namespace
}  // namespace tambour::calls_test
