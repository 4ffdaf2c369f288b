// The profiles of HttpArena (https://www.http-arena.com) for HTTP/1.1: what the clients request,
// and what the servers compute.
//
// The workloads are those that HttpArena describes, on one processor: bench/README.md lists the
// differences. Servers in C++ share the functions below where their library has none of its own.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "http/client.h"

namespace bench {

enum class ArenaProfile : int {
  baseline,
  pipelined,
  limited_conn,
  json,
  json_comp,
  upload,
  static_files,
};

/// The sum of the values of the query and of the body, as text/plain.
inline constexpr const char* sum_target = "/baseline11";
/// "ok", as text/plain.
inline constexpr const char* ok_target = "/pipeline";
/// Followed by COUNT?m=MULTIPLIER: arena_json(), made for each request.
inline constexpr std::string_view items_target = "/json/";
/// Followed by COUNT?m=MULTIPLIER: the same, compressed with gzip at gzip_level if the client
/// accepts it.
inline constexpr std::string_view compressed_items_target = "/json-comp/";
inline constexpr int gzip_level = 5;
/// Followed by the name of a file in FOLDER/files/static, which a subject sends from the disk.
inline constexpr std::string_view files_target = "/static/";

struct ArenaLoad {
  std::vector<HttpWork> works;  ///< Each connection makes these requests one after the other.
  int pipelined = 1;
  int requests_per_connection = 0;  ///< 0: no limit.
};
ArenaLoad arena_load(ArenaProfile profile);

/// Writes the files of the profile static to FOLDER/files/static, which must exist.
void write_arena_files(const std::string& folder);

/// The sum of the values of a query such as a=13&b=42.
long sum_of_query(std::string_view query);

/// The first `count` of 50 items, each with its price * quantity * `multiplier`.
std::string arena_json(int count, int multiplier);
/// The same for the part of the target that follows items_target.
std::string arena_json(std::string_view count_and_query);

}  // namespace bench
