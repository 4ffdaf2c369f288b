// Records for operators: the sink, the rate limit of each place, the format logfmt, and the adapter
// for the journal of systemd.
#include <tambour/base/log.h>

#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/adapters/journald.h>

#include "base/log/log_site.h"
#include "support/log_lines.h"
#include "support/temporary_folder.h"

namespace tambour::log_test {
namespace {

using test::LogLines;

TEST(Log, no_record_without_a_sink) {
  static constinit detail::base::LogSite site(LogLevel::info, "test", "unseen");
  EXPECT_FALSE(detail::base::LogSite::is_enabled());
  for (int i = 0; i < 20; ++i) site.write({});
  const LogLines lines;
  EXPECT_TRUE(detail::base::LogSite::is_enabled());
  site.write({});
  EXPECT_EQ(lines.suppressed, std::vector<std::uint64_t>{0}) << "only records for a sink count";
}

TEST(Log, lines_have_names_and_values) {
  static constinit detail::base::LogSite site(LogLevel::warning, "server", "it is full");
  const LogLines lines;
  site.write({{"connections", 7U}, {"error", "EMFILE"}, {"at", "[::1]:80"}, {"empty", ""}});
  ASSERT_EQ(lines.lines.size(), 1U);
  EXPECT_EQ(lines.lines[0],
            "level=warning component=server message=\"it is full\" connections=7 error=EMFILE "
            "at=[::1]:80 empty=\"\"");
}

// Texts may come from peers.
TEST(Log, texts_cannot_forge_lines_or_fields) {
  static constinit detail::base::LogSite site(LogLevel::error, "test", "thrown");
  const LogLines lines;
  site.write({{"what", "a\nlevel=info \"b\" \\ \x1b[31m"}, {"pair", "x=1"}});
  ASSERT_EQ(lines.lines.size(), 1U);
  EXPECT_EQ(lines.lines[0],
            "level=error component=test message=thrown "
            "what=\"a?level=info \\\"b\\\" \\\\ ?[31m\" pair=\"x=1\"");
}

TEST(Log, each_place_is_limited) {
  using detail::base::LogSite;
  static constinit LogSite flood(LogLevel::info, "test", "flood");
  static constinit LogSite other(LogLevel::info, "test", "other");
  const LogLines lines;
  for (unsigned i = 0; i < 3 * LogSite::records_max; ++i) flood.write({});
  // On a machine that stops for ten seconds, a second window begins.
  EXPECT_GE(lines.lines.size(), LogSite::records_max);
  EXPECT_LE(lines.lines.size(), 2 * LogSite::records_max);
  const std::size_t before = lines.lines.size();
  other.write({});
  EXPECT_EQ(lines.lines.size(), before + 1);
}

TEST(Log, names_of_levels) {
  EXPECT_EQ(name_of(LogLevel::info), "info");
  EXPECT_EQ(name_of(LogLevel::warning), "warning");
  EXPECT_EQ(name_of(LogLevel::error), "error");
}

TEST(Log, the_number_of_suppressed_records_is_in_the_line) {
  LogRecord record;
  record.component = "test";
  record.message = "m";
  record.suppressed = 12;
  std::string line;
  append_log_line(line, record);
  EXPECT_EQ(line, "level=info component=test message=m suppressed=12");
}

/// A field in the binary form of the protocol.
std::string field(const std::string& name, const std::string& value) {
  return name + '\n' + static_cast<char>(value.size()) + std::string(7, '\0') + value + '\n';
}

TEST(Journald, a_record_is_a_datagram_with_fields) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path() + "/journal";
  const UniqueFd journal(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(journal.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);

  adapters::JournaldSink sink("service", path);
  LogSink* const former = set_log_sink(&sink);
  static constinit detail::base::LogSite site(LogLevel::warning, "server", "it is full");
  site.write({{"connections", 7}, {"error", "EMFILE\nPRIORITY=0"}});
  set_log_sink(former);

  std::array<char, 1024> datagram;
  const ssize_t size = ::recv(journal.get(), datagram.data(), datagram.size(), MSG_DONTWAIT);
  ASSERT_GT(size, 0);
  EXPECT_EQ(std::string(datagram.data(), static_cast<std::size_t>(size)),
            field("PRIORITY", "4") + field("SYSLOG_IDENTIFIER", "service") +
                field("MESSAGE", "\"it is full\" connections=7 error=\"EMFILE?PRIORITY=0\"") +
                field("TAMBOUR_COMPONENT", "server") + field("TAMBOUR_CONNECTIONS", "7") +
                field("TAMBOUR_ERROR", "EMFILE\nPRIORITY=0"));
  EXPECT_EQ(sink.lost(), 0U);
}

TEST(Journald, records_without_a_journal_are_counted) {
  adapters::JournaldSink sink("service", "/nonexistent/journal");
  LogRecord record;
  record.message = "m";
  sink.write(record);
  sink.write(record);
  EXPECT_EQ(sink.lost(), 2U);
}

}  // namespace
}  // namespace tambour::log_test
