// The fixture: each scenario on each backend, on a loop of its own, watched for what must never
// happen.
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

  /// From `plan` to `clear` something may fail: opens a loop and plays, and returns the error that
  /// was told. Then sees that the same loop, or a new one where there was none, plays as if nothing
  /// had been, and that nothing is left behind.
  Error play(const std::function<void()>& plan, const std::function<void()>& clear);

 private:
  Error play_once(std::unique_ptr<EventLoop>& loop);
  void play_again(std::unique_ptr<EventLoop>& loop);
  void expect_no_spin(const EventLoop& loop, const LoopStats& before) const;
};

void PrintTo(const Scenario& scenario, std::ostream* out);  // NOLINT: GoogleTest's own name.
std::string name_of_sweep(const testing::TestParamInfo<Sweep::ParamType>& sweep);

}  // namespace tambour::test

#define TAMBOUR_ON_EACH_BACKEND(suite)                                                 \
  INSTANTIATE_TEST_SUITE_P(Every, suite,                                               \
                           testing::Combine(testing::ValuesIn(test::all_variants()),   \
                                            testing::ValuesIn(test::all_scenarios())), \
                           &test::name_of_sweep)
