// Serves files to concurrent clients: a request is a line with the name of a file in the directory;
// the response is a line with the file's size and then its bytes, or "-1" if it does not exist.
//
//   build/examples/file_server 127.0.0.1:7000 /srv/files
//
// Without arguments, it serves its own executable to clients of its own and ends.
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include <tambour/tambour.h>

using namespace tambour;

struct Folder {
  std::string path;

  Task<bool> send_file(TcpStream& peer, std::string name) const {
    // Rejects paths outside of the directory and hidden files.
    const bool is_plain = !name.empty() && !name.starts_with('.') && !name.contains('/');
    Result<File> file = std::unexpected(system_error(ENOENT));
    if (is_plain) file = co_await File::open(path + "/" + name);
    if (!file) co_return (co_await peer.write("-1\n")).has_value();
    const auto size = co_await file->size();
    if (!size || !co_await peer.write(std::to_string(*size) + "\n")) co_return false;
    std::vector<std::byte> block(std::size_t{64} * 1024);
    for (std::uint64_t at = 0; at < *size;) {
      const auto got = co_await file->read_at(block, at);
      if (!got || *got == 0) co_return false;  // The file was truncated.
      if (!co_await peer.write(std::span(block).first(*got))) co_return false;
      at += *got;
    }
    co_return true;
  }

  Task<> serve(TcpStream peer) const {
    Buffer buffer;
    while (auto name = co_await read_line(peer, buffer)) {
      if (!co_await send_file(peer, name->to_string())) co_return;
    }
  }
};

Task<> fetch(Endpoint server, std::string name, std::uintmax_t expected, int& fetched) {
  auto stream = co_await TcpStream::connect(server);
  if (!stream || !co_await stream->write(name + "\n.\n")) co_return;
  Buffer buffer;
  const auto size = co_await read_line(*stream, buffer);
  if (!size || size->to_string() != std::to_string(expected)) co_return;
  const auto bytes = co_await read_exactly(*stream, buffer, expected);
  const auto refused = co_await read_line(*stream, buffer);
  if (bytes && refused && *refused == "-1") ++fetched;
}

int main(int argc, char** argv) {
  const auto at = Endpoint::parse(argc > 1 ? argv[1] : "127.0.0.1:0");
  if (!at) return std::fprintf(stderr, "%s: %s\n", argv[1], at.error().message().c_str()), 2;
  const std::filesystem::path program = std::filesystem::canonical("/proc/self/exe");
  const Folder folder{argc > 2 ? argv[2] : program.parent_path().string()};
  EventLoop loop;
  auto server = TcpServer::listen(loop, *at);
  if (!server) return std::fprintf(stderr, "%s\n", server.error().message().c_str()), 1;
  server->serve([&folder](TcpStream peer) { return folder.serve(std::move(peer)); });
  if (argc > 1) return loop.run(), 0;
  int fetched = 0;
  spawn(loop, [](TcpServer& local, std::string name, std::uintmax_t size, int& count) -> Task<> {
    const TaskContext& context = co_await this_task;
    TaskScope clients(*context.loop);
    for (int i = 0; i < 10; ++i) clients.spawn(fetch(local.endpoint(), name, size, count));
    co_await clients.join();
    co_await local.shut_down(std::chrono::seconds(1));
  }(*server, program.filename().string(), std::filesystem::file_size(program), fetched));
  loop.run();
  std::printf("%d of 10 have it\n", fetched);
  return fetched == 10 ? 0 : 1;
}
