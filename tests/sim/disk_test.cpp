// The files of a simulated host, with injected failures.
#include <array>
#include <cerrno>

#include <gtest/gtest.h>

#include <tambour/file.h>
#include <tambour/simulation.h>
#include <tambour/task_scope.h>

namespace tambour::disk_test {
namespace {

TEST(SimulatedDisk, fails_on_request) {
  Simulation simulation;
  SimulatedHost& host = simulation.add_host("host");
  EventLoop loop(host.loop_options());
  spawn(loop, [](SimulatedHost& on) -> Task<> {
    on.fail_next(SystemCall::open, EMFILE);
    EXPECT_EQ((co_await File::open("a", FileMode::create)).error(), system_error(EMFILE));
    auto file = co_await File::open("a", FileMode::create);
    EXPECT_TRUE(file);
    if (!file) co_return;
    on.fail_next(SystemCall::pwrite, ENOSPC);
    EXPECT_EQ((co_await file->write_at("text", 0)).error(), system_error(ENOSPC));
    EXPECT_TRUE(co_await file->write_at("text", 0));
    std::array<std::byte, 4> place;
    on.fail_next(SystemCall::pread, EIO);
    EXPECT_EQ((co_await file->read_at(place, 0)).error(), system_error(EIO));
    on.fail_next(SystemCall::pread, EINTR, 3);
    EXPECT_EQ(co_await file->read_at(place, 0), 4U);
    on.fail_next(SystemCall::fsync, EIO);
    EXPECT_EQ((co_await file->sync()).error(), system_error(EIO));
    EXPECT_TRUE(co_await file->sync());
    on.fail_next(SystemCall::ftruncate, EFBIG);
    EXPECT_EQ((co_await file->truncate(1)).error(), system_error(EFBIG));
    on.fail_next(SystemCall::fstat, EIO);
    EXPECT_EQ((co_await file->size()).error(), system_error(EIO));
    // A file can be unlinked while it is open.
    EXPECT_EQ(on.unlink("a"), 0);
    EXPECT_EQ((co_await File::open("a")).error(), system_error(ENOENT));
    EXPECT_EQ(co_await file->read_at(place, 0), 4U);
  }(host));
  EXPECT_EQ(simulation.run(), SimulationEnd::finished);
  EXPECT_EQ(host.descriptors(), 0U);
}

}  // namespace
}  // namespace tambour::disk_test
