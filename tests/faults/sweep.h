// The fixture that runs each scenario on each backend, on a loop of its own, and checks for leaks
// and busy-loops.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <tuple>

#include <gtest/gtest.h>

#include "faults/scenarios.h"
#include "support/on_every_backend.h"

namespace tambour::test {

class Sweep : public testing::TestWithParam<std::tuple<Variant, Scenario>> {
 protected:
  void SetUp() override;

  [[nodiscard]] LoopOptions options() const { return std::get<Variant>(GetParam()).options; }
  [[nodiscard]] const Scenario& scenario() const { return std::get<Scenario>(GetParam()); }

  /// Between `plan` and `clear` calls may fail: opens a loop, runs the scenario and returns the
  /// error that it received. Then checks that the scenario succeeds on the same loop, or on a new
  /// one if opening failed, and that no descriptor leaks.
  Error play(const std::function<void()>& plan, const std::function<void()>& clear);

 private:
  Error play_once(std::unique_ptr<EventLoop>& loop);
  void play_again(std::unique_ptr<EventLoop>& loop);
  void expect_no_spin(const EventLoop& loop, const LoopStats& before) const;
};

void PrintTo(const Scenario& scenario, std::ostream* out);  // NOLINT: GoogleTest's name.
std::string name_of_sweep(const testing::TestParamInfo<Sweep::ParamType>& sweep);

}  // namespace tambour::test

#define TAMBOUR_ON_EACH_BACKEND(suite)                                                 \
  INSTANTIATE_TEST_SUITE_P(Every, suite,                                               \
                           testing::Combine(testing::ValuesIn(test::all_variants()),   \
                                            testing::ValuesIn(test::all_scenarios())), \
                           &test::name_of_sweep)
