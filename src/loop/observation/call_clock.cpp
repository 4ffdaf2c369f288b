// CallClock: whether the processor has a usable counter, and its rate.
#include "loop/observation/call_clock.h"

#ifdef __x86_64__
#include <cpuid.h>
#endif
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <limits>
#include <string_view>

namespace tambour::detail::loop {
namespace {

/// False if the counters of two processors may differ, which the kernel finds out.
[[maybe_unused]] bool is_trusted_by_kernel() noexcept {
  const int fd = ::open("/sys/devices/system/clocksource/clocksource0/current_clocksource",
                        O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  std::array<char, 32> text{};
  const ssize_t size = ::read(fd, text.data(), text.size());
  ::close(fd);
  const std::string_view name(text.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  return name.starts_with("tsc") || name.starts_with("kvm-clock") || name.starts_with("hyperv");
}

}  // namespace

bool CallClock::has_constant_counter() noexcept {
#ifdef __x86_64__
  // AMD64 Architecture Programmer's Manual, volume 3, E.4.6: the invariant TSC.
  constexpr unsigned power_management = 0x8000'0007;
  constexpr unsigned invariant_counter = 1U << 8U;
  static const bool is_invariant = [] {
    unsigned eax = 0;
    unsigned ebx = 0;
    unsigned ecx = 0;
    unsigned edx = 0;
    return __get_cpuid(power_management, &eax, &ebx, &ecx, &edx) != 0 &&
           (edx & invariant_counter) != 0 && is_trusted_by_kernel();
  }();
  return is_invariant;
#else
  return false;
#endif
}

void CallClock::use_counter() noexcept { has_counter_ = has_constant_counter(); }

void CallClock::compare_readings(const backend::Backend& backend) noexcept {
  // The thread may be preempted between two readings: the pair that took the fewest counts is used.
  constexpr int pairs = 3;
  std::int64_t now_ns = 0;
  std::uint64_t count = 0;
  auto fewest = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t before = read_counter();
  for (int i = 0; i < pairs; ++i) {
    const std::int64_t read_ns = backend.monotonic_ns();
    const std::uint64_t after = read_counter();
    if (after - before < fewest) {
      fewest = after - before;
      now_ns = read_ns;
      count = before + fewest / 2;
    }
    before = after;
  }
  compare(now_ns, count);
}

void CallClock::compare(std::int64_t now_ns, std::uint64_t count) noexcept {
  constexpr std::int64_t first_measurement_ns = 10'000'000;
  constexpr std::int64_t last_measurement_ns = 1'000'000'000;
  adjusted_ns_ = now_ns;
  adjusted_count_ = count;
  const std::int64_t passed_ns = now_ns - first_ns_;
  if (measured_after_ns_ != 0 && passed_ns < measured_after_ns_) return;
  if (measured_after_ns_ != 0) {
    const auto counts = static_cast<std::int64_t>(count - first_count_);
    ns_per_count_ = counts > 0 ? static_cast<double>(passed_ns) / static_cast<double>(counts) : 0;
    // The first measurements are repeated soon, as a longer time gives a more exact rate.
    measured_after_ns_ *= 2;
    if (measured_after_ns_ < last_measurement_ns) return;
  }
  // The rate changes if a virtual machine moves to another host.
  measured_after_ns_ = measured_after_ns_ == 0 ? first_measurement_ns : last_measurement_ns;
  first_ns_ = now_ns;
  first_count_ = count;
}

}  // namespace tambour::detail::loop
