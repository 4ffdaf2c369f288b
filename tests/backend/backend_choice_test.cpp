// Backend selection: the option first, then the environment, then what the kernel supports.
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/files.h"
#include "support/process.h"
#include "support/sandbox.h"

namespace tambour::backend_choice_test {
namespace {

constexpr std::pair<const char*, BackendKind> names[] = {
    {"epoll", BackendKind::epoll},
    {"io_uring", BackendKind::io_uring},
    {"poll", BackendKind::poll},
    {"select", BackendKind::select},
};

/// Sets TAMBOUR_BACKEND and restores it on destruction.
class Environment {
 public:
  explicit Environment(const char* value) {
    if (const char* now = std::getenv(name)) before_ = now;
    set(value);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  ~Environment() { set(before_ ? before_->c_str() : nullptr); }

 private:
  static constexpr const char* name = "TAMBOUR_BACKEND";
  static void set(const char* value) {
    if (value != nullptr) {
      ::setenv(name, value, 1);
    } else {
      ::unsetenv(name);
    }
  }
  std::optional<std::string> before_;
};

/// If io_uring was requested, epoll with a fallback reason is accepted too.
void expect_kind(const BackendTraits& traits, BackendKind wanted) {
  if (wanted == BackendKind::io_uring && traits.kind == BackendKind::epoll) {
    EXPECT_FALSE(traits.fallback_reason.empty());
    return;
  }
  EXPECT_EQ(traits.kind, wanted);
  EXPECT_TRUE(traits.fallback_reason.empty()) << traits.fallback_reason;
}

bool io_uring_runs_here() {
  return EventLoop({.backend = BackendKind::io_uring}).backend().fallback_reason.empty();
}

/// Returns 0 if the loop fell back to epoll for `reason` and works.
int status_of_fallen_back_loop(std::string_view reason) {
  EventLoop loop({.backend = BackendKind::io_uring});
  if (loop.backend().kind != BackendKind::epoll) return 1;
  if (loop.backend().fallback_reason.find(reason) == std::string_view::npos) return 2;
  const auto pipe = test::open_pipe();
  int calls = 0;
  FdWatcher watcher(loop, pipe.near.get(), Events::read, [&](Events) {
    ++calls;
    loop.stop();
  });
  if (!watcher.start()) return 3;
  test::write_to(pipe.far);
  loop.run();
  return calls == 1 ? 0 : 4;
}

TEST(BackendChoice, the_option_decides) {
  for (const auto& [name, kind] : names) {
    const EventLoop loop({.backend = kind});
    expect_kind(loop.backend(), kind);
    if (loop.backend().kind == kind) {
      EXPECT_EQ(loop.backend().name, name);
    }
  }
}

TEST(BackendChoice, the_environment_decides_if_the_option_is_not_set) {
  for (const auto& [name, kind] : names) {
    const Environment environment(name);
    const EventLoop loop;
    expect_kind(loop.backend(), kind);
  }
}

TEST(BackendChoice, the_option_overrides_the_environment) {
  const Environment environment("poll");
  for (const auto& [name, kind] : names) expect_kind(EventLoop({.backend = kind}).backend(), kind);
  // Even an invalid value.
  const Environment nonsense("nonsense");
  EXPECT_EQ(EventLoop({.backend = BackendKind::epoll}).backend().kind, BackendKind::epoll);
}

TEST(BackendChoice, a_backend_is_chosen_by_default) {
  const Environment unset(nullptr);
  const BackendKind automatic = EventLoop().backend().kind;
  EXPECT_NE(automatic, BackendKind::automatic);
  for (const char* value : {"", "auto"}) {
    const Environment environment(value);
    EXPECT_EQ(EventLoop().backend().kind, automatic);
  }
}

TEST(BackendChoice, an_unknown_name_is_an_error) {
  for (const char* value : {"iouring", "EPOLL", " epoll", "epoll ", "kqueue", "0"}) {
    const Environment environment(value);
    const auto opened = EventLoop::open();
    ASSERT_FALSE(opened) << value;
    EXPECT_EQ(opened.error(), system_error(EINVAL));
    try {
      const EventLoop loop;
      FAIL() << "no exception for " << value;
    } catch (const std::system_error& thrown) {
      EXPECT_EQ(thrown.code(), system_error(EINVAL));
    }
  }
}

TEST(BackendChoice, every_ring_size_is_accepted) {
  if (!io_uring_runs_here()) GTEST_SKIP() << "io_uring cannot run here";
  for (const unsigned submissions : {0U, 1U, 3U, 256U, 1'000'000U}) {
    for (const unsigned completions : {0U, 1U, 3U, 256U, 1'000'000U}) {
      const EventLoop loop({.backend = BackendKind::io_uring,
                            .submission_entries = submissions,
                            .completion_entries = completions});
      EXPECT_EQ(loop.backend().kind, BackendKind::io_uring)
          << submissions << ", " << completions << ": " << loop.backend().fallback_reason;
    }
  }
}

TEST(BackendChoice, falls_back_if_a_sandbox_forbids_io_uring) {
  EXPECT_EQ(test::in_child([] {
              if (!test::forbid_io_uring(EPERM)) return 77;
              return status_of_fallen_back_loop("EPERM");
            }),
            0);
}

TEST(BackendChoice, other_backends_do_not_report_a_fallback_in_a_sandbox) {
  EXPECT_EQ(test::in_child([] {
              const Environment unset(nullptr);
              if (!test::forbid_io_uring(EPERM)) return 77;
              const EventLoop loop;
              if (loop.backend().kind == BackendKind::io_uring) return 1;
              for (const BackendKind kind :
                   {BackendKind::epoll, BackendKind::poll, BackendKind::select}) {
                const EventLoop other({.backend = kind});
                if (other.backend().kind != kind || !other.backend().fallback_reason.empty())
                  return 2;
              }
              return 0;
            }),
            0);
}

TEST(BackendChoice, falls_back_if_the_kernel_has_no_io_uring) {
  EXPECT_EQ(test::in_child([] {
              if (!test::forbid_io_uring(ENOSYS)) return 77;
              return status_of_fallen_back_loop("ENOSYS");
            }),
            0);
}

TEST(BackendChoice, falls_back_if_no_memory_may_be_locked) {
  if (!io_uring_runs_here()) GTEST_SKIP() << "io_uring cannot run here";
  const int status = test::in_child([] {
    const rlimit none{.rlim_cur = 0, .rlim_max = 0};
    if (::setrlimit(RLIMIT_MEMLOCK, &none) != 0) return 77;
    // CAP_IPC_LOCK overrides RLIMIT_MEMLOCK.
    constexpr unsigned unprivileged_id = 65534;
    if (::geteuid() == 0 && ::setresuid(unprivileged_id, unprivileged_id, unprivileged_id) != 0)
      return 77;
    if (EventLoop({.backend = BackendKind::io_uring}).backend().kind == BackendKind::io_uring)
      return 78;
    return status_of_fallen_back_loop("RLIMIT_MEMLOCK");
  });
  if (status == 77) GTEST_SKIP() << "the limit cannot be set here";
  if (status == 78) GTEST_SKIP() << "this kernel does not count rings against the limit";
  EXPECT_EQ(status, 0);
}

TEST(BackendChoice, a_backend_chosen_by_the_environment_falls_back) {
  EXPECT_EQ(test::in_child([] {
              const Environment environment("io_uring");
              if (!test::forbid_io_uring(EPERM)) return 77;
              const EventLoop loop;
              if (loop.backend().kind != BackendKind::epoll) return 1;
              return loop.backend().fallback_reason.empty() ? 2 : 0;
            }),
            0);
}

TEST(BackendChoice, the_error_for_an_unknown_name_lists_the_valid_names) {
  const Environment environment("epol");
  try {
    const EventLoop loop;
    ADD_FAILURE() << "a loop was opened";
  } catch (const std::system_error& refused) {
    EXPECT_EQ(refused.code(), system_error(EINVAL));
    const std::string text = refused.what();
    EXPECT_NE(text.find("TAMBOUR_BACKEND=\"epol\""), std::string::npos) << text;
    EXPECT_NE(text.find("auto, epoll, io_uring, poll or select"), std::string::npos) << text;
  }
  // A backend chosen by the options ignores the environment.
  EXPECT_TRUE(EventLoop::open({.backend = BackendKind::epoll}));
}

}  // namespace
}  // namespace tambour::backend_choice_test
