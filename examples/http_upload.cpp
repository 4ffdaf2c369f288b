// Uploads: a form with files of any size, which are written to a directory as they arrive.
//
//   build/examples/http_upload 127.0.0.1:8080 DIRECTORY     then open http://127.0.0.1:8080, or
//   curl -F note=hello -F file=@FILE http://127.0.0.1:8080
//
// Without arguments, it serves a client of its own and ends.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include <tambour/tambour.h>

using namespace tambour;

const char* const page = R"(<!DOCTYPE html><title>Upload</title>
<form method="post" enctype="multipart/form-data">
  <input name="note"> <input type="file" name="file" multiple> <button>Upload</button>
</form>
)";

/// Writes the current part to a new file. Returns the number of bytes.
Task<Result<std::uint64_t>> save(http::FormReader& form, std::string path) {
  auto file = co_await File::open(path, FileMode::create_new);
  if (!file) co_return std::unexpected(file.error());
  for (std::uint64_t size = 0;;) {
    auto piece = co_await form.read();
    if (!piece) co_return std::unexpected(piece.error());
    if (piece->empty()) co_return size;
    const std::size_t bytes = piece->size();
    const auto written = co_await file->write_at(*piece, size);
    if (!written) co_return std::unexpected(written.error());
    size += bytes;
  }
}

Task<> upload(http::Request& request, http::Response& response, const std::string& directory) {
  request.body().set_bytes_max(std::uint64_t{10} << 30U);
  auto form = http::FormReader::open(request, {.part_bytes_max = std::uint64_t{1} << 30U});
  if (!form) co_return;  // The server answers: 415, or 400.
  std::string text;
  while (true) {
    const auto more = co_await form->next();
    if (!more) co_return;  // The server answers: 400, 408, 413.
    if (!*more) break;
    if (!form->part().file_name) {
      const auto value = co_await form->read_all(1000);
      if (!value) co_return;
      text += form->part().name + ": " + value->to_string() + "\n";
      continue;
    }
    const std::string name = form->part().safe_file_name();
    if (name.empty()) continue;
    const auto size = co_await save(*form, directory + "/" + name);
    if (!size) {
      response.send(http::Status::conflict, name + ": " + size.error().message() + "\n");
      co_return;
    }
    text += name + ": " + std::to_string(*size) + " bytes\n";
  }
  response.send(text);
}

Task<> demonstrate(http::Server& server, EventLoop& loop, bool& uploaded) {
  const Buffer body(
      "--b\r\nContent-Disposition: form-data; name=note\r\n\r\nhello\r\n--b\r\n"
      "Content-Disposition: form-data; name=file; filename=\"../a.txt\"\r\n\r\nfile\r\n--b--\r\n");
  http::Client client(loop);
  http::ClientRequest request(http::Method::post, "http://" + server.endpoint().to_string(),
                              body.slice());
  request.fields.set("Content-Type", "multipart/form-data; boundary=b");
  auto response = or_throw(co_await client.send(std::move(request)), "POST");
  uploaded = or_throw(co_await response.read_text()) == "note: hello\na.txt: 4 bytes\n";
  co_await server.shut_down(std::chrono::seconds(1));
  loop.stop();
}

int main(int argc, char** argv) try {
  std::string temporary = "/tmp/http_upload_XXXXXX";
  const std::string directory = argc > 2 ? argv[2] : ::mkdtemp(temporary.data());
  EventLoop loop;
  http::Router router;
  router.get("/", [](http::Request&, http::Response& response) {
    response.headers().set("Content-Type", "text/html; charset=utf-8");
    response.send(page);
  });
  router.post("/", [&](http::Request& request, http::Response& response) {
    return upload(request, response, directory);
  });
  const auto at = or_throw(Endpoint::parse(argc > 2 ? argv[1] : "127.0.0.1:0"));
  auto server = or_throw(http::Server::listen(loop, at, std::move(router).handler()));
  bool uploaded = argc > 2;
  if (argc <= 2) spawn(loop, demonstrate(server, loop, uploaded));
  loop.run();
  if (argc <= 2) ::remove((directory + "/a.txt").c_str()), ::rmdir(directory.c_str());
  return uploaded ? 0 : 1;
} catch (const std::exception& error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
