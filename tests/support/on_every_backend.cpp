// The variants of loops on which tests run, and the fixture that opens one of them.
#include "support/on_every_backend.h"

#include <exception>
#include <ostream>
#include <utility>

#include "support/process.h"

namespace tambour::test {

void PrintTo(const Variant& variant, std::ostream* out) { *out << variant.name; }

const std::vector<Variant>& all_variants() {
  using namespace std::chrono_literals;
  // Must match the list in tests/CMakeLists.txt.
  static const std::vector<Variant> variants{
      {.name = "epoll", .options = {.backend = BackendKind::epoll}},
      {.name = "io_uring", .options = {.backend = BackendKind::io_uring}},
      // Small rings, which overflow often.
      {.name = "io_uring_small",
       .options = {.backend = BackendKind::io_uring,
                   .submission_entries = 4,
                   .completion_entries = 8}},
      {.name = "poll", .options = {.backend = BackendKind::poll}},
      {.name = "select", .options = {.backend = BackendKind::select}},
      {.name = "epoll_spin", .options = {.backend = BackendKind::epoll, .spin = 50us}},
      {.name = "io_uring_spin", .options = {.backend = BackendKind::io_uring, .spin = 50us}},
  };
  return variants;
}

std::string name_of_variant(const testing::TestParamInfo<Variant>& variant) {
  return variant.param.name;
}

void OnEveryBackend::SetUp() {
  options_ = GetParam().options;
  if (GetParam().is_simulated) {
    simulation_.emplace(1, sim::Options{.trace = false});
    options_ = simulation_->add_host("host").loop_options();
  }
  if (GetParam().transport != nullptr) transport() = GetParam().transport();
  own_loop_.emplace(options());
  if (traits().kind != options().backend) {
    GTEST_SKIP() << GetParam().name << " cannot run on this machine: " << traits().fallback_reason;
  }
}

void OnEveryBackend::TearDown() {
  own_loop_.reset();
  transport() = {};
}

void OnEveryBackend::run_iterations(int iterations) {
  for (int iteration = 0; iteration < iterations; ++iteration) loop().run_ready();
}

bool OnEveryBackend::run_until(const std::function<bool()>& done) {
  using namespace std::chrono_literals;
  bool late = false;
  Timer limit(loop(), [&late] { late = true; });
  limit.start(1min);
  for (;;) {
    if (done()) return true;
    if (late) return false;
    loop().run_once();
  }
}

bool OnEveryBackend::eventually(const std::function<bool()>& done) {
  using namespace std::chrono_literals;
  Timer tick(loop(), [] {});
  tick.start(1ms, 1ms);
  return run_until(done);
}

void OnEveryBackend::run(Task<> task) {
  std::exception_ptr thrown;
  TaskScope scope(loop());
  scope.set_exception_handler(
      [&thrown](std::exception_ptr subject) { thrown = std::move(subject); });
  scope.spawn(std::move(task));
  const bool is_done = run_until([&scope] { return scope.empty(); });
  if (thrown != nullptr) std::rethrow_exception(thrown);
  EXPECT_TRUE(is_done);
}

void OnEveryBackend::run_for(Duration time) {
  bool over = false;
  Timer end(loop(), [&over] { over = true; });
  end.start(time);
  while (!over) loop().run_once();
}

bool OnEveryBackend::sleeps_through(Duration time) {
  // A spinning loop fails every attempt. On a busy machine, interrupts are occasionally charged to
  // a waiting thread.
  for (int attempt = 0; attempt < 3; ++attempt) {
    const Duration before = processor_time();
    run_for(time);
    if ((processor_time() - before) * 5 < time) return true;
  }
  return false;
}

}  // namespace tambour::test
