// Scenes that tests play in directories of their own, on the kernel and on a simulated host.
#pragma once

#include <string>

#include <gtest/gtest.h>

#include <tambour/fs/paths.h>
#include <tambour/task/task.h>

namespace tambour::test {

/// A task that uses the directory `folder` as it likes.
using Scene = Task<> (*)(std::string folder);

inline Task<> play_in(std::string folder, Scene scene) {
  const auto created = co_await fs::create_directories(folder);
  EXPECT_TRUE(created) << (created ? std::string() : created.error().message());
  co_await scene(folder);
}

}  // namespace tambour::test
