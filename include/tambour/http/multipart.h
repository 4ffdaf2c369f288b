// Sending forms with files: multipart/form-data, RFC 7578. http/form.h reads them.
//
//   http::MultipartForm form;
//   form.add("title", "Holiday");
//   form.add_file("photo", "/home/me/photo.jpg");
//   http::ClientRequest request(http::Method::post, "https://example.org/upload");
//   const auto attached = co_await form.attach_to(request);
//   if (!attached) co_return std::unexpected(attached.error());
//   auto response = co_await client.send(std::move(request));
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tambour/base/result.h>
#include <tambour/bytes/buffer.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/client.h>
#include <tambour/task/task.h>

#pragma GCC visibility push(default)

namespace tambour::http {

/// How a file is named in a form.
struct FormFile {
  std::string file_name{};     ///< Empty: the last component of the path.
  std::string content_type{};  ///< Empty: by the extension of the name, as for http::serve_files().
};

/// The controls of a form, in the order in which they are sent.
///
/// Names and file names are sent as browsers do: as UTF-8, with "%22", "%0D" and "%0A" for quotes
/// and line ends.
/// Memory: files are read in pieces of 64 KiB while they are sent.
class MultipartForm {
 public:
  /// A control with a text. Throws std::bad_alloc, as the functions below do.
  void add(std::string_view name, std::string_view value);
  /// A file whose contents are in memory. Without a content type and a file name with an extension,
  /// it is application/octet-stream.
  void add_contents(std::string_view name, Buffer contents, FormFile file);
  /// A file that is opened by attach_to(), and read while the request is sent. attach_to() fails
  /// with ENOENT if the path is empty.
  void add_file(std::string_view name, std::string path, FormFile file = {});

  /// Opens the files, and makes the form the body of `request`, with its Content-Type and its
  /// length: in memory if there are no files, so that the request may be repeated, and otherwise as
  /// a BodySource. The form is empty then. Both must exist until the task has ended.
  ///
  /// Fails with the errors of File::open() and File::size(), and with
  /// http::ErrorCode::bad_field_value if a content type is no field value; the form and the request
  /// must not be used then. If a file is shorter when it is sent, the request fails with
  /// StreamError::truncated; what is appended to it meanwhile is not sent. Throws std::bad_alloc.
  [[nodiscard]] Task<Result<>> attach_to(ClientRequest& request);

 private:
  struct Part {
    std::string name{};
    bool is_file = false;
    FormFile file{};
    std::string path{};  ///< If `is_read_from_path`; otherwise `contents`.
    bool is_read_from_path = false;
    Buffer contents{};
  };

  std::vector<Part> parts_;
};

}  // namespace tambour::http

#pragma GCC visibility pop
