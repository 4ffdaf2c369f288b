// Counters, gauges and histograms, and their formats.
#include <tambour/metrics.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/temporary_folder.h"

namespace tambour::metrics_test {
namespace {

using namespace std::chrono_literals;
using metrics::Counter;
using metrics::Exposition;
using metrics::Format;
using metrics::format_metrics;
using metrics::Gauge;
using metrics::Histogram;
using metrics::Registry;

TEST(Metrics, of_threads_are_summed) {
  constexpr int threads = 20;  // More than there are groups of cells.
  constexpr int rounds = 10'000;
  Registry registry;
  const auto jobs = registry.counters("jobs_total", "", {"queue"});
  Gauge running = registry.gauge("running", "");
  Histogram durations = registry.histogram("durations", "", std::vector{1.0, 2.0});
  std::vector<std::thread> running_threads;
  for (int i = 0; i < threads; ++i) {
    running_threads.emplace_back([&] {
      Counter counter = jobs.with({"mail"});
      for (int round = 0; round < rounds; ++round) {
        counter.add(2);
        running.add(0.5);
        durations.observe(1.5);
      }
    });
  }
  for (std::thread& thread : running_threads) thread.join();
  EXPECT_EQ(jobs.with({"mail"}).value(), 2U * threads * rounds);
  EXPECT_EQ(running.value(), 0.5 * threads * rounds);
  EXPECT_EQ(durations.count(1), std::uint64_t{threads} * rounds);
  EXPECT_EQ(durations.sum(), 1.5 * threads * rounds);
}

TEST(Metrics, belong_to_their_name) {
  Registry registry;
  registry.counter("a_total", "A.").add(3);
  registry.counter("a_total", "A.").add(4);
  EXPECT_EQ(registry.counter("a_total", "A.").value(), 7U);
  registry.gauge("b", "").set(-1);
  EXPECT_EQ(registry.gauge("b", "").value(), -1);
}

TEST(Metrics, count_values_in_the_bucket_of_their_bound) {
  Registry registry;
  Histogram sizes = registry.histogram("sizes", "", std::vector{1.0, 10.0});
  for (const double value : {-1.0, 1.0, 1.5, 10.0, 10.5, HUGE_VAL}) sizes.observe(value);
  EXPECT_EQ(sizes.count(0), 2U);
  EXPECT_EQ(sizes.count(1), 2U);
  EXPECT_EQ(sizes.count(2), 2U);
  EXPECT_EQ(sizes.count(3), 0U);
  sizes.observe(std::nan(""));
  EXPECT_EQ(sizes.count(2), 3U);
  Histogram times = registry.histogram("times_seconds", "");
  times.observe(3ms);
  EXPECT_EQ(times.count(3), 1U);  // Up to 5 ms.
  EXPECT_EQ(times.sum(), 0.003);
}

TEST(Metrics, have_a_limit_of_series) {
  Registry registry;
  const auto peers = registry.counters("peers_total", "", {"name", "port"}, {.series_max = 2});
  peers.with({"a", "1"}).add();
  peers.with({"b", "1"}).add();
  for (int i = 0; i < 1000; ++i) peers.with({"c" + std::to_string(i), "1"}).add();
  peers.with({"a", "1"}).add();
  EXPECT_EQ(peers.with({"a", "1"}).value(), 2U);
  EXPECT_EQ(format_metrics(registry),
            "# TYPE peers_total counter\n"
            "peers_total{name=\"a\",port=\"1\"} 2\n"
            "peers_total{name=\"b\",port=\"1\"} 1\n"
            "peers_total{name=\"(other)\",port=\"(other)\"} 1000\n");
}

TEST(Metrics, have_the_text_format_of_prometheus) {
  Registry registry;
  registry.counter("jobs_total", "Jobs, with a \\ and\na \"line\".")
      .add(18'446'744'073'709'551'615U);
  registry.gauges("temperature", "", {"place"}).with({"a\"b\\c\nd"}).set(-0.1);
  registry.gauge("not_a_number", "").set(std::nan(""));
  registry.gauge("infinite", "").set(-HUGE_VAL);
  registry.histogram("sizes", "Sizes.", std::vector{0.5, 2.0}).observe(1);
  const metrics::Registration up = registry.gauge_function("up", "", [] { return 1.0; });
  EXPECT_EQ(format_metrics(registry),
            "# HELP jobs_total Jobs, with a \\\\ and\\na \"line\".\n"
            "# TYPE jobs_total counter\n"
            "jobs_total 18446744073709551615\n"
            "# TYPE temperature gauge\n"
            "temperature{place=\"a\\\"b\\\\c\\nd\"} -0.1\n"
            "# TYPE not_a_number gauge\n"
            "not_a_number NaN\n"
            "# TYPE infinite gauge\n"
            "infinite -Inf\n"
            "# HELP sizes Sizes.\n"
            "# TYPE sizes histogram\n"
            "sizes_bucket{le=\"0.5\"} 0\n"
            "sizes_bucket{le=\"2\"} 1\n"
            "sizes_bucket{le=\"+Inf\"} 1\n"
            "sizes_sum 1\n"
            "sizes_count 1\n"
            "# TYPE up gauge\n"
            "up 1\n");
}

TEST(Metrics, have_the_format_of_open_metrics) {
  Registry registry;
  registry.counters("jobs_total", "A \"job\".", {"queue"}).with({"mail"}).add(3);
  registry.histogram("sizes", "", std::vector{2.0}).observe(1);
  EXPECT_EQ(format_metrics(registry, Format::open_metrics),
            "# HELP jobs A \\\"job\\\".\n"
            "# TYPE jobs counter\n"
            "jobs_total{queue=\"mail\"} 3\n"
            "# TYPE sizes histogram\n"
            "sizes_bucket{le=\"2.0\"} 1\n"
            "sizes_bucket{le=\"+Inf\"} 1\n"
            "sizes_sum 1\n"
            "sizes_count 1\n"
            "# EOF\n");
}

TEST(Metrics, are_formatted_in_pieces) {
  Registry registry;
  const auto many = registry.counters("many_total", "", {"n"}, {.series_max = 1000});
  for (int i = 0; i < 250; ++i) many.with({std::to_string(i)}).add();
  registry.gauge("last", "").set(1);
  for (const std::size_t series_max : {0U, 1U, 7U, 100U, 251U, 1000U}) {
    Exposition exposition(registry);
    std::string text;
    std::size_t pieces = 1;
    while (exposition.next(text, series_max)) ++pieces;
    EXPECT_EQ(text, format_metrics(registry));
    EXPECT_EQ(pieces, (251 + std::max<std::size_t>(series_max, 1) - 1) /
                          std::max<std::size_t>(series_max, 1));
  }
}

TEST(Metrics, that_are_computed_are_formatted_in_pieces) {
  Registry registry;
  int computed = 0;
  std::vector<metrics::Registration> registrations;
  for (int i = 0; i < 5; ++i) {
    registrations.push_back(
        registry.gauge_function("gauge_" + std::to_string(i), "", [&] { return ++computed; }));
  }
  registrations.pop_back();  // So that nothing is left after two pieces.
  Exposition exposition(registry);
  std::string text;
  EXPECT_TRUE(exposition.next(text, 2));
  EXPECT_EQ(computed, 2);
  EXPECT_FALSE(exposition.next(text, 2));
  EXPECT_EQ(computed, 4);
  EXPECT_NE(text.find("gauge_3 4\n"), std::string::npos);
}

TEST(Metrics, that_are_computed_may_be_removed_and_registered_again) {
  Registry registry;
  {
    metrics::Registration first = registry.gauge_function("up", "", [] { return 1.0; });
    metrics::Registration moved = std::move(first);
    EXPECT_EQ(format_metrics(registry), "# TYPE up gauge\nup 1\n");
    moved = registry.gauge_function("down", "", [] { return 0.0; });
    EXPECT_EQ(format_metrics(registry), "# TYPE down gauge\ndown 0\n");
  }
  EXPECT_EQ(format_metrics(registry), "");
  const metrics::Registration again = registry.gauge_function("up", "", [] { return 2.0; });
  EXPECT_EQ(format_metrics(registry), "# TYPE up gauge\nup 2\n");
  const metrics::Registration uptime =
      registry.counter_function("uptime_seconds_total", "", [] { return 0.25; });
  EXPECT_NE(format_metrics(registry).find("uptime_seconds_total 0.25\n"), std::string::npos);
}

using MetricsDeathTest = ::testing::Test;

TEST(MetricsDeathTest, names_and_labels_are_checked) {
  Registry registry;
  static_cast<void>(registry.counter("jobs_total", ""));
  EXPECT_DEATH(static_cast<void>(registry.gauge("", "")), "\"\" is not a name of a metric");
  EXPECT_DEATH(static_cast<void>(registry.gauge("a-b", "")), "\"a-b\" is not a name of a metric");
  EXPECT_DEATH(static_cast<void>(registry.counter("jobs", "")), "jobs must end in _total");
  EXPECT_DEATH(static_cast<void>(registry.gauge("jobs_total", "")), "is registered already");
  EXPECT_DEATH(static_cast<void>(registry.counters("jobs_total", "", {"a"})),
               "is registered already");
  EXPECT_DEATH(static_cast<void>(registry.gauge_function("jobs_total", "", [] { return 0.0; })),
               "is registered already");
  EXPECT_DEATH(static_cast<void>(registry.gauges("a", "", {"__a"})), "is not a label");
  EXPECT_DEATH(static_cast<void>(registry.histograms("a", "", {"le"})), "is not a label");
  EXPECT_DEATH(static_cast<void>(registry.gauges("a", "", {"b", "c", "b"})),
               "a has the label \"b\" twice");
  EXPECT_DEATH(static_cast<void>(registry.gauges("a", "", {"b"}).with({"1", "2"})),
               "with 2 values for the 1 labels of a");
  EXPECT_DEATH(static_cast<void>(registry.histogram("a", "", std::vector{2.0, 1.0})),
               "in ascending order");
}

TEST(Metrics, are_computed_for_labels_as_well) {
  Registry registry;
  metrics::Registration first =
      registry.gauge_function("queued", "Calls.", {{"pool", "files"}}, [] { return 3.0; });
  const metrics::Registration second =
      registry.gauge_function("queued", "Calls.", {{"pool", "names"}}, [] { return 4.0; });
  const metrics::Registration calls =
      registry.counter_function("calls_total", "", {{"pool", "files"}}, [] { return 5.0; });
  const metrics::Registration times = registry.histogram_function(
      "times_seconds", "", {{"loop", "0"}}, std::vector{0.5, 2.0},
      [] { return metrics::HistogramValue{.counts = {2, 1}, .sum = 1.25}; });
  const std::string rest =
      "queued{pool=\"names\"} 4\n"
      "# TYPE calls_total counter\n"
      "calls_total{pool=\"files\"} 5\n"
      "# TYPE times_seconds histogram\n"
      "times_seconds_bucket{loop=\"0\",le=\"0.5\"} 2\n"
      "times_seconds_bucket{loop=\"0\",le=\"2\"} 3\n"
      "times_seconds_bucket{loop=\"0\",le=\"+Inf\"} 3\n"
      "times_seconds_sum{loop=\"0\"} 1.25\n"
      "times_seconds_count{loop=\"0\"} 3\n";
  const std::string head = "# HELP queued Calls.\n# TYPE queued gauge\n";
  EXPECT_EQ(format_metrics(registry), head + "queued{pool=\"files\"} 3\n" + rest);
  // In pieces, and without the series that was removed.
  first = {};
  std::string text;
  Exposition exposition(registry);
  while (exposition.next(text, 1)) {
  }
  EXPECT_EQ(text, head + rest);
  first = registry.gauge_function("queued", "Calls.", {{"pool", "files"}}, [] { return 6.0; });
  EXPECT_EQ(format_metrics(registry), head + "queued{pool=\"files\"} 6\n" + rest);
}

/// A program may register and remove functions with other labels for as long as it runs.
TEST(Metrics, of_functions_take_the_place_of_removed_ones) {
  Registry registry;
  const auto add = [&](const std::string& pool) {
    return registry.gauge_function("queued", "", {{"pool", pool}}, [] { return 3.0; });
  };
  const auto series = [](const std::string& pool) { return "queued{pool=\"" + pool + "\"} 3\n"; };
  metrics::Registration first = add("a");
  const metrics::Registration second = add("b");
  metrics::Registration third = add("c");
  first = {};
  first = add("d");
  const std::string head = "# TYPE queued gauge\n";
  EXPECT_EQ(format_metrics(registry), head + series("d") + series("b") + series("c"));
  // A series is written once, even if it is removed and added in another place meanwhile.
  std::string text;
  Exposition exposition(registry);
  EXPECT_TRUE(exposition.next(text, 1));
  first = {};
  first = add("e");
  third = {};
  third = add("d");
  while (exposition.next(text, 1)) {
  }
  EXPECT_EQ(text, head + series("d") + series("b"));
  EXPECT_EQ(format_metrics(registry), head + series("e") + series("b") + series("d"));
}

TEST(MetricsDeathTest, of_functions_with_the_same_labels_abort) {
  Registry registry;
  const auto add = [&](const metrics::Labels& labels) {
    return registry.gauge_function("queued", "", labels, [] { return 3.0; });
  };
  const metrics::Registration first = add({{"pool", "files"}});
  EXPECT_DEATH(static_cast<void>(add({{"pool", "files"}})), "queued is registered already");
  EXPECT_DEATH(static_cast<void>(add({{"loop", "files"}})), "queued is registered already");
}

/// The parsers of the Python client understand both formats as they were meant.
TEST(Metrics, are_read_by_the_client_of_prometheus) {
  if (std::system("/usr/bin/python3 -c 'import prometheus_client' 2>/dev/null") != 0)
    GTEST_SKIP() << "python3-prometheus-client is not installed";
  Registry registry;
  registry.counters("jobs_total", "Jobs \\ \"x\"\nmore.", {"queue"}).with({"a\"b\\c\nd"}).add(3);
  registry.gauge("temperature", "").set(-1.5e-7);
  registry.histograms("sizes", "Sizes.", {"kind"}, std::vector{0.5, 2.0, 1e6})
      .with({"x"})
      .observe(3);
  for (const Format format : {Format::prometheus_text, Format::open_metrics}) {
    const test::TemporaryFolder folder;
    const std::string path = folder.path() + "/metrics";
    std::FILE* const file = std::fopen(path.c_str(), "w");
    ASSERT_NE(file, nullptr);
    std::fputs(format_metrics(registry, format).c_str(), file);
    std::fclose(file);
    const std::string module = format == Format::open_metrics
                                   ? "prometheus_client.openmetrics.parser"
                                   : "prometheus_client.parser";
    const std::string command =
        "/usr/bin/python3 -c 'import sys\nfrom " + module +
        " import text_string_to_metric_families as parse\n"
        "found = {(s.name, tuple(sorted(s.labels.items()))): s.value\n"
        "         for f in parse(open(sys.argv[1]).read()) for s in f.samples}\n"
        "label = (\"queue\", \"a\\\"b\\\\c\\nd\")\n"
        "assert found[(\"jobs_total\", (label,))] == 3, found\n"
        "assert found[(\"temperature\", ())] == -1.5e-7, found\n"
        "assert found[(\"sizes_sum\", ((\"kind\", \"x\"),))] == 3, found\n"
        "assert len(found) == 8, found\n' " +
        path;
    EXPECT_EQ(std::system(command.c_str()), 0) << format_metrics(registry, format);
  }
}

}  // namespace
}  // namespace tambour::metrics_test
