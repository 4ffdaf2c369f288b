// A server with CPU-bound requests: each line is a sudoku of 81 digits, 0 for an empty cell; the
// response is its solution, or "none". A thread pool solves the puzzles; the loop does the I/O.
//
//   build/examples/sudoku 127.0.0.1:7000
//
// Without an address, it serves a client of its own on a free port and ends.
#include <algorithm>
#include <cstdio>
#include <string>

#include <tambour/tambour.h>

using namespace tambour;

constexpr std::size_t cells = 81;

bool fits(const std::string& board, std::size_t at, char digit) {
  const std::size_t row = at / 9, column = at % 9;
  const std::size_t box = row / 3 * 27 + column / 3 * 3;
  for (std::size_t i = 0; i < 9; ++i) {
    if (board[row * 9 + i] == digit || board[i * 9 + column] == digit) return false;
    if (board[box + i / 3 * 9 + i % 3] == digit) return false;
  }
  return true;
}

bool solve(std::string& board, std::size_t from = 0) {
  const std::size_t at = board.find('0', from);
  if (at == std::string::npos) return true;
  for (char digit = '1'; digit <= '9'; ++digit) {
    if (!fits(board, at, digit)) continue;
    board[at] = digit;
    if (solve(board, at + 1)) return true;
  }
  board[at] = '0';
  return false;
}

std::string answer(std::string board) {
  const auto is_digit = [](char byte) { return byte >= '0' && byte <= '9'; };
  if (board.size() != cells || !std::ranges::all_of(board, is_digit)) return "not a sudoku";
  return solve(board) ? board : "none";
}

Task<> serve(TcpStream peer) {
  Buffer buffer;
  while (auto line = co_await read_line(peer, buffer)) {
    auto work = [question = line->to_string()] { return answer(question); };
    const auto answered = co_await WorkerPool::shared().run(std::move(work));
    if (!answered || !co_await peer.write(*answered + "\n")) co_return;
  }
}

Task<> ask(TcpServer& server, int& status) {
  auto stream = co_await TcpStream::connect(server.endpoint());
  const std::string puzzle =
      "530070000600195000098000060800060003400803001700020006060000280000419005000080079";
  if (stream && co_await stream->write(puzzle + "\n" + "1\n")) {
    Buffer buffer;
    const auto solved = co_await read_line(*stream, buffer);
    const auto refused = co_await read_line(*stream, buffer);
    if (solved && refused) {
      std::printf("%s\n%s\n", solved->to_string().c_str(), refused->to_string().c_str());
      if (solved->size() == cells && *refused == "not a sudoku") status = 0;
    }
    stream->close();
  }
  co_await server.shut_down(std::chrono::seconds(1));
}

int main(int argc, char** argv) {
  const auto at = Endpoint::parse(argc > 1 ? argv[1] : "127.0.0.1:0");
  if (!at) return std::fprintf(stderr, "%s: %s\n", argv[1], at.error().message().c_str()), 2;
  EventLoop loop;
  auto server = TcpServer::listen(loop, *at);
  if (!server) return std::fprintf(stderr, "%s\n", server.error().message().c_str()), 1;
  server->serve(serve);
  int status = 1;
  if (argc < 2) spawn(loop, ask(*server, status));
  loop.run();
  return status;
}
