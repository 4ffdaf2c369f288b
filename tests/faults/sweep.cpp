// Plays a scenario again and again; each time another call, completion or allocation fails.
#include "faults/sweep.h"

#include <new>
#include <ostream>

#include "support/process.h"

namespace tambour::test {

void PrintTo(const Scenario& scenario, std::ostream* out) { *out << scenario.name; }

std::string name_of_sweep(const testing::TestParamInfo<Sweep::ParamType>& sweep) {
  return std::get<Scenario>(sweep.param).name + ("_" + std::get<Variant>(sweep.param).name);
}

void Sweep::SetUp() {
  const auto loop = EventLoop::open(options());
  ASSERT_TRUE(loop);
  const BackendTraits& traits = (*loop)->backend();
  if (traits.kind != options().backend) {
    GTEST_SKIP() << std::get<Variant>(GetParam()).name
                 << " cannot run here: " << traits.fallback_reason;
  }
  if (EmbeddedLoop::possible(**loop)) {
    EXPECT_FALSE(scenario().play(**loop));
  }
  // Forces the creation of descriptors that the process keeps, such as the eventfd for its signals.
  Signal signal(**loop, SIGUSR1, [](int) {});
  EXPECT_TRUE(signal.start());
}

Error Sweep::play(const std::function<void()>& plan, const std::function<void()>& clear) {
  const std::size_t before = open_descriptors();
  std::unique_ptr<EventLoop> loop;
  plan();
  const Error reported = play_once(loop);
  clear();
  play_again(loop);
  loop.reset();
  EXPECT_EQ(open_descriptors(), before) << "descriptors were left";
  return reported;
}

Error Sweep::play_once(std::unique_ptr<EventLoop>& loop) {
  auto opened = EventLoop::open(options());
  if (!opened) return opened.error();
  loop = std::move(*opened);
  const LoopStats before = loop->stats();
  Error reported;
  try {
    reported = scenario().play(*loop);
  } catch (const std::bad_alloc&) {
    reported = system_error(ENOMEM);
  }
  expect_no_spin(*loop, before);
  return reported;
}

void Sweep::play_again(std::unique_ptr<EventLoop>& loop) {
  if (loop == nullptr) loop = std::make_unique<EventLoop>(options());
  const LoopStats before = loop->stats();
  EXPECT_EQ(scenario().play(*loop), Error()) << "although nothing failed any more";
  expect_no_spin(*loop, before);
  EXPECT_EQ(loop->stats().references, 0) << "something was left started";
}

void Sweep::expect_no_spin(const EventLoop& loop, const LoopStats& before) const {
  const LoopStats now = loop.stats();
  EXPECT_LT(now.iterations - before.iterations, 400U) << "the loop was kept busy";
  EXPECT_LT(now.system_calls - before.system_calls, 1200U) << "the kernel was kept busy";
}

}  // namespace tambour::test
