// Saturating time arithmetic, and sets of events.
#include <tambour/base/clock.h>

#include <poll.h>

#include <limits>

#include <gtest/gtest.h>

#include <tambour/base/result.h>
#include <tambour/loop/readiness.h>

#include "base/clock.h"

namespace tambour::clock_test {
namespace {

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

TEST(Clock, is_the_standard_steady_clock) {
  const std::int64_t before_ns = Clock::now().time_since_epoch().count();
  const std::int64_t between_ns = detail::base::monotonic_ns();
  EXPECT_LE(before_ns, between_ns);
  EXPECT_LE(between_ns, Clock::now().time_since_epoch().count());
}

TEST(Clock, adds_up_to_the_end_of_time_and_no_further) {
  EXPECT_EQ(detail::base::saturating_add(1, 2), 3);
  EXPECT_EQ(detail::base::saturating_add(largest - 1, 1), largest);
  EXPECT_EQ(detail::base::saturating_add(largest, 1), largest);
  EXPECT_EQ(detail::base::saturating_add(1, largest), largest);
  EXPECT_EQ(detail::base::saturating_add(largest, largest), largest);
  EXPECT_EQ(detail::base::saturating_add(5, -3), 2);
  EXPECT_EQ(TimePoint(Duration(detail::base::end_of_time_ns)), never);
}

TEST(Clock, splits_nanoseconds_into_a_timespec) {
  EXPECT_EQ(detail::base::to_timespec(0).tv_sec, 0);
  EXPECT_EQ(detail::base::to_timespec(999'999'999).tv_sec, 0);
  EXPECT_EQ(detail::base::to_timespec(999'999'999).tv_nsec, 999'999'999);
  EXPECT_EQ(detail::base::to_timespec(1'000'000'001).tv_sec, 1);
  EXPECT_EQ(detail::base::to_timespec(1'000'000'001).tv_nsec, 1);
  EXPECT_EQ(detail::base::to_timespec(largest).tv_sec, largest / 1'000'000'000);
}

TEST(Events, are_those_of_poll) {
  EXPECT_EQ(int(Events::read), POLLIN);
  EXPECT_EQ(int(Events::urgent), POLLPRI);
  EXPECT_EQ(int(Events::write), POLLOUT);
  EXPECT_EQ(int(Events::error), POLLERR);
  EXPECT_EQ(int(Events::closed), POLLRDHUP);
}

TEST(Events, are_a_set) {
  Events events = Events::read | Events::write;
  EXPECT_TRUE(has(events, Events::read));
  EXPECT_TRUE(has(events, Events::read | Events::closed));
  EXPECT_FALSE(has(events, Events::closed));
  events &= ~Events::read;
  EXPECT_EQ(events, Events::write);
  events |= Events::urgent;
  EXPECT_EQ(events, Events::write | Events::urgent);
  EXPECT_FALSE(has(events, Events::none));
}

TEST(Error, means_the_same_with_either_sign) {
  EXPECT_EQ(system_error(EBADF), std::errc::bad_file_descriptor);
  EXPECT_EQ(system_error(-EBADF), system_error(EBADF));
  EXPECT_FALSE(system_error(0));
}

}  // namespace
}  // namespace tambour::clock_test
