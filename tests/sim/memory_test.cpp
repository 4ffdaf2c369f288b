// If a simulated loop cannot be created because of ENOMEM, nothing is left in its simulation.
#include <cstddef>
#include <cstdlib>
#include <new>
#include <optional>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

namespace {

std::optional<std::size_t> allocations_left;

}  // namespace

[[gnu::noinline]] void* operator new(std::size_t size) {
  if (allocations_left && (*allocations_left)-- == 0) {
    allocations_left.reset();
    throw std::bad_alloc();
  }
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace tambour::memory_test {
namespace {

TEST(SimulatedMemory, a_loop_that_fails_to_open_leaks_nothing) {
  std::size_t failures = 0;
  for (bool count = false; !count; ++failures) {
    sim::Simulation simulation;
    // Too long for the small-string optimization.
    sim::Host& host = simulation.add_host("a host that has a rather long name");
    const LoopOptions options = host.loop_options();
    allocations_left = failures;
    const auto opened = EventLoop::open(options);
    allocations_left.reset();
    count = opened.has_value();
    if (!count) {
      EXPECT_EQ(opened.error(), system_error(ENOMEM));
    }
    // Would access anything left over.
    simulation.run();
  }
  EXPECT_GT(failures, 4U);
}

}  // namespace
}  // namespace tambour::memory_test
