// Runs the corpus of the fuzzer and random inputs: the loop must behave as the model predicts.
#include "fuzz/player.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <vector>

#include <gtest/gtest.h>

#include "fuzz/random_input.h"
#include "support/scale.h"

namespace tambour::player_test {
namespace {

using Bytes = std::vector<std::uint8_t>;

TEST(FuzzedLoop, matches_the_model_with_the_corpus) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(TAMBOUR_CORPUS))
    paths.push_back(entry.path());
  std::ranges::sort(paths);
  ASSERT_FALSE(paths.empty());
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    const Bytes bytes{std::istreambuf_iterator<char>(file), {}};
    const fuzz::Outcome outcome = fuzz::play(bytes);
    EXPECT_EQ(outcome.failure, "") << path << '\n' << outcome.trace;
  }
}

TEST(FuzzedLoop, matches_the_model_with_inputs_of_many_seeds) {
  const auto began = std::chrono::steady_clock::now();
  std::uint64_t callbacks = 0;
  const std::uint64_t seeds = test::scaled(20'000);
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const fuzz::Outcome outcome = fuzz::play(fuzz::random_input(seed));
    ASSERT_EQ(outcome.failure, "") << "seed " << seed << '\n' << outcome.trace;
    callbacks += outcome.callbacks;
  }
  EXPECT_GT(callbacks, seeds);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  std::cout << seeds << " inputs, " << callbacks << " callbacks in " << took.count() << " s\n";
}

}  // namespace
}  // namespace tambour::player_test
