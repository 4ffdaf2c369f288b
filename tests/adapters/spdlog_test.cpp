// The records of the library in a logger of spdlog.

// As in the pkg-config file of Debian's package, but header only: a macro on the command line would
// keep the test from using the precompiled header.
#define SPDLOG_FMT_EXTERNAL

#include <tambour/adapters/spdlog.h>

#include <spdlog/sinks/ostream_sink.h>

#include <memory>
#include <sstream>

#include <gtest/gtest.h>

namespace tambour::spdlog_test {
namespace {

TEST(Spdlog, levels_and_fields) {
  std::ostringstream lines;
  auto logger = std::make_shared<spdlog::logger>(
      "tambour", std::make_shared<spdlog::sinks::ostream_sink_mt>(lines));
  logger->set_pattern("%l %v");
  logger->set_level(spdlog::level::warn);
  adapters::SpdlogSink sink(logger);
  const LogField fields[] = {{"connections", 7}};
  LogRecord record;
  record.component = "server";
  record.message = "it is full {}";
  record.fields = fields;
  for (const LogLevel level : {LogLevel::info, LogLevel::warning, LogLevel::error}) {
    record.level = level;
    sink.write(record);
  }
  EXPECT_EQ(lines.str(),
            "warning component=server message=\"it is full {}\" connections=7\n"
            "error component=server message=\"it is full {}\" connections=7\n");
}

}  // namespace
}  // namespace tambour::spdlog_test
