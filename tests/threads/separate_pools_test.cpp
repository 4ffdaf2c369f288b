// Files, name resolution and the program's own calls have separate pools: none waits for the
// threads of another. Each pool limits its threads and its queued calls.
#include <cerrno>
#include <cstdlib>
#include <latch>
#include <memory>
#include <semaphore>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/on_every_backend.h"
#include "support/process.h"
#include "support/temporary_folder.h"

namespace tambour::separate_pools_test {
namespace {

/// Occupies all threads of a pool until it is destroyed.
class Occupied {
 public:
  explicit Occupied(WorkerPool& pool) {
    for (unsigned i = 0; i < pool.threads(); ++i) {
      pool.submit([running = running_, over = over_] {
        running->release();
        over->wait();
      });
    }
    for (unsigned i = 0; i < pool.threads(); ++i) running_->acquire();
  }
  Occupied(const Occupied&) = delete;
  Occupied& operator=(const Occupied&) = delete;
  ~Occupied() { over_->count_down(); }

 private:
  std::shared_ptr<std::counting_semaphore<>> running_ =
      std::make_shared<std::counting_semaphore<>>(0);
  std::shared_ptr<std::latch> over_ = std::make_shared<std::latch>(1);
};

class SeparatePools : public test::OnEveryBackend {
 public:
  using OnEveryBackend::loop;
  test::TemporaryFolder folder;

  static Task<> expect_files(std::string path) {
    auto file = co_await File::open(path, FileMode::create);
    EXPECT_TRUE(file);
    if (!file) co_return;
    EXPECT_TRUE(co_await file->write_at("text", 0));
    EXPECT_EQ(co_await file->size(), 4U);
  }
  static Task<> expect_names() {
    // Any answer will do, as long as there is one.
    static_cast<void>(co_await Resolver::system().resolve("localhost", 80));
  }
  static Task<> expect_calls() {
    auto call = [] { return 1; };
    EXPECT_EQ(co_await WorkerPool::shared().run(std::move(call)), 1);
  }
};

TAMBOUR_ON_EVERY_BACKEND(SeparatePools);

TEST_P(SeparatePools, lookups_that_hang_stop_neither_files_nor_calls) {
  const Occupied hanging(WorkerPool::names());
  run(expect_files(folder.path() + "/file"));
  run(expect_calls());
}

TEST_P(SeparatePools, files_that_hang_stop_neither_lookups_nor_calls) {
  const Occupied hanging(WorkerPool::files());
  run(expect_names());
  run(expect_calls());
}

TEST_P(SeparatePools, calls_that_hang_stop_neither_files_nor_lookups) {
  const Occupied hanging(WorkerPool::shared());
  run(expect_files(folder.path() + "/file"));
  run(expect_names());
}

TEST_P(SeparatePools, a_call_beyond_the_limit_is_refused) {
  WorkerPool pool(2, 3);
  EXPECT_EQ(pool.queued_max(), 3U);
  std::vector<Error> outcomes;
  const auto call = [](WorkerPool& with, std::vector<Error>& into) -> Task<> {
    const auto got = co_await with.run([] {});
    into.push_back(got ? Error() : got.error());
  };
  TaskScope scope(loop());
  {
    const Occupied busy(pool);
    for (int i = 0; i < 3; ++i) scope.spawn(call(pool, outcomes));
    run_iterations();
    EXPECT_TRUE(outcomes.empty());
    scope.spawn(call(pool, outcomes));
    EXPECT_TRUE(run_until([&] { return outcomes.size() == 1; }));
    EXPECT_EQ(outcomes.at(0), system_error(EAGAIN));
    EXPECT_THROW(pool.submit([] {}), std::system_error);
  }
  EXPECT_TRUE(run_until([&] { return outcomes.size() == 4; }));
  // The queue accepts calls again.
  scope.spawn(call(pool, outcomes));
  EXPECT_TRUE(run_until([&] { return outcomes.size() == 5; }));
  for (std::size_t i = 1; i < outcomes.size(); ++i) EXPECT_EQ(outcomes[i], Error());
}

TEST(PoolLimits, are_those_of_the_documentation) {
  // In child processes, because this process may have created the pools already.
  const auto threads_with = [](const char* variable, WorkerPool& (*pool)(), const char* value) {
    return test::in_child([=] {
      ::setenv(variable, value, 1);
      return int(pool().threads());
    });
  };
  EXPECT_EQ(threads_with("TAMBOUR_FILE_WORKERS", &WorkerPool::files, "7"), 7);
  EXPECT_GE(threads_with("TAMBOUR_FILE_WORKERS", &WorkerPool::files, "none"), 4);
  EXPECT_EQ(threads_with("TAMBOUR_RESOLVER_WORKERS", &WorkerPool::names, "7"), 7);
  EXPECT_EQ(threads_with("TAMBOUR_RESOLVER_WORKERS", &WorkerPool::names, "none"), 16);
  EXPECT_EQ(WorkerPool::names().queued_max(), 16'384U);
  EXPECT_EQ(WorkerPool::files().queued_max(), 65'536U);
  EXPECT_EQ(WorkerPool::shared().queued_max(), 1'048'576U);
}

}  // namespace
}  // namespace tambour::separate_pools_test
