// Problems of a service: each is seen in one view of its inspector.
#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "inspector/inspected_server.h"

namespace tambour::problems_test {
namespace {

using namespace std::chrono_literals;

class InspectedProblems : public test::InspectedServer {
 public:
  /// What `expression` is of the view, as soon as that is `wanted`.
  void expect_soon(const std::string& view, const std::string& expression,
                   const std::string& wanted) {
    for (int i = 0; i < 1000; ++i) {
      if (python(view, expression) == wanted) return;
      std::this_thread::sleep_for(5ms);
    }
    ADD_FAILURE() << view << " has never shown " << wanted << ", but " << python(view, "a");
  }
};

TEST_F(InspectedProblems, are_each_seen_in_one_view) {
  listen();
  test::Problems& problems = have_problems();
  // Tasks that wait for connections have waited for longer, as they should.
  expect_soon("/tasks?sort=waited&q=event",
              R"((a["tasks"][0]["awaits"], a["tasks"][0]["awaits_at"], )"
              R"(a["tasks"][0]["waited_seconds"] > 0.02))",
              "('event', '" + problems.stuck_place() + "', True)");
  // One of them, because the machine may stop other callbacks for as long.
  expect_soon("/callbacks",
              '"' + problems.blocking_place() +
                  R"(" in [c["place"] for c in a["callbacks"] if c["longest_seconds"] >= 0.12])",
              "True");
  expect_soon("/callbacks", R"(max(a["callbacks"], key=lambda c: c["calls"])["place"])",
              problems.hot_place());
  // Both of its ends belong to this process.
  expect_soon("/connections?q=established&sort=idle_ms&order=desc&limit=1",
              R"([(")" + problems.leaking_connection() +
                  R"(" in (c["peer"], c["local"]), c["idle_ms"] >= 5) for c in a["connections"]])",
              "[(True, True)]");
  const std::string labels = "{resolver=\"prices\",server=\"" + problems.name_server() + "\"} ";
  const std::string metrics = page("/metrics");
  const std::string latency = "tambour_dns_name_server_latency_seconds" + labels;
  const std::size_t found = metrics.find(latency);
  ASSERT_NE(found, std::string::npos) << metrics;
  EXPECT_GE(std::stod(metrics.substr(found + latency.size())), 0.05);
  EXPECT_NE(metrics.find("tambour_dns_name_server_responses_total" + labels + "1\n"),
            std::string::npos)
      << metrics;
}

}  // namespace
}  // namespace tambour::problems_test
