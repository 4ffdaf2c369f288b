// The query of the subjects that use libmariadb without an adapter: its steps, as an example of
// its documentation has them.
#pragma once

#include <mysql.h>

#include <string_view>

#include "clients/clients.h"

namespace bench {

/// A connection, which has connected, and its query.
class MariadbQuery {
 public:
  explicit MariadbQuery(const std::string& socket) {
    mysql_init(&mysql_);
    mysql_options(&mysql_, MYSQL_OPT_NONBLOCK, nullptr);
    if (mysql_real_connect(&mysql_, nullptr, "test", nullptr, nullptr, 0, socket.c_str(), 0) ==
        nullptr)
      fail(mysql_error(&mysql_));
  }
  MariadbQuery(const MariadbQuery&) = delete;
  MariadbQuery& operator=(const MariadbQuery&) = delete;
  ~MariadbQuery() { mysql_close(&mysql_); }

  int fd() { return mysql_get_socket(&mysql_); }
  /// Returns what the query waits for: MYSQL_WAIT_READ and others; 0 if it has ended.
  int start() {
    constexpr std::string_view text = "select 1";
    stores_ = false;
    return advance(mysql_real_query_start(&failed_, &mysql_, text.data(), text.size()));
  }
  /// `ready`: which of that has happened.
  int resume(int ready) {
    return advance(stores_ ? mysql_store_result_cont(&rows_, &mysql_, ready)
                           : mysql_real_query_cont(&failed_, &mysql_, ready));
  }

 private:
  int advance(int status) {
    if (status != 0) return status;
    if (!stores_) {
      if (failed_ != 0) fail(mysql_error(&mysql_));
      stores_ = true;
      status = mysql_store_result_start(&rows_, &mysql_);
      if (status != 0) return status;
    }
    const MYSQL_ROW row = rows_ == nullptr ? nullptr : mysql_fetch_row(rows_);
    if (row == nullptr || *row[0] != '1') fail("MariaDB: no row");
    mysql_free_result(rows_);
    return 0;
  }

  MYSQL mysql_{};
  bool stores_ = false;
  int failed_ = 0;
  MYSQL_RES* rows_ = nullptr;
};

}  // namespace bench
