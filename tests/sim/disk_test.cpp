// The files of a simulated host, with injected failures.
#include <array>
#include <cerrno>

#include <gtest/gtest.h>

#include <tambour/file/file.h>
#include <tambour/sim/simulation.h>
#include <tambour/task/scope.h>

namespace tambour::disk_test {
namespace {

TEST(SimulatedDisk, fails_on_request) {
  sim::Simulation simulation;
  sim::Host& host = simulation.add_host("host");
  EventLoop loop(host.loop_options());
  spawn(loop, [](sim::Host& given_host) -> Task<> {
    given_host.fail_next(sim::SystemCall::open, EMFILE);
    EXPECT_EQ((co_await File::open("a", FileMode::create)).error(), system_error(EMFILE));
    auto file = co_await File::open("a", FileMode::create);
    EXPECT_TRUE(file);
    if (!file) co_return;
    given_host.fail_next(sim::SystemCall::pwrite, ENOSPC);
    EXPECT_EQ((co_await file->write_at("text", 0)).error(), system_error(ENOSPC));
    EXPECT_TRUE(co_await file->write_at("text", 0));
    std::array<std::byte, 4> place;
    given_host.fail_next(sim::SystemCall::pread, EIO);
    EXPECT_EQ((co_await file->read_at(place, 0)).error(), system_error(EIO));
    given_host.fail_next(sim::SystemCall::pread, EINTR, 3);
    EXPECT_EQ(co_await file->read_at(place, 0), 4U);
    given_host.fail_next(sim::SystemCall::fsync, EIO);
    EXPECT_EQ((co_await file->sync()).error(), system_error(EIO));
    EXPECT_TRUE(co_await file->sync());
    given_host.fail_next(sim::SystemCall::ftruncate, EFBIG);
    EXPECT_EQ((co_await file->truncate(1)).error(), system_error(EFBIG));
    given_host.fail_next(sim::SystemCall::fstat, EIO);
    EXPECT_EQ((co_await file->size()).error(), system_error(EIO));
    // A file can be unlinked while it is open.
    EXPECT_EQ(given_host.unlink("a"), 0);
    EXPECT_EQ((co_await File::open("a")).error(), system_error(ENOENT));
    EXPECT_EQ(co_await file->read_at(place, 0), 4U);
  }(host));
  EXPECT_EQ(simulation.run(), sim::End::finished);
  EXPECT_EQ(host.descriptors(), 0U);
}

}  // namespace
}  // namespace tambour::disk_test
