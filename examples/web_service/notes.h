// The notes of the tutorial "A web service in an hour": docs/web-service.md.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include <tambour/tambour.h>

/// Notes in memory, as JSON:
///
///   GET /notes              all notes
///   POST /notes             {"text": "..."}: adds a note
///   GET /notes/{id}
///   DELETE /notes/{id}
class Notes {
 public:
  /// The notes must exist as long as the routes.
  void add_routes(tambour::http::Router& router) {
    using tambour::http::Request;
    using tambour::http::Response;
    router.get("/notes", [this](Request&, Response& response) { list(response); });
    router.post("/notes",
                [this](Request& request, Response& response) { return add(request, response); });
    router.get("/notes/{id}", [this](Request& request, Response& response) {
      const auto note = find(request, response);
      if (note != notes_.end()) send_json(response, json_of(*note));
    });
    router.delete_("/notes/{id}", [this](Request& request, Response& response) {
      const auto note = find(request, response);
      if (note == notes_.end()) return;
      notes_.erase(note);
      response.send(Status::no_content);
    });
  }

 private:
  using Status = tambour::http::Status;
  using Json = nlohmann::json;
  using Stored = std::map<int, std::string>;

  /// What a client can make grow needs a limit.
  static constexpr std::size_t notes_max = 1000;
  static constexpr std::size_t note_bytes_max = 10'000;

  tambour::Task<> add(tambour::http::Request& request, tambour::http::Response& response) {
    auto body = co_await request.body().read_all(note_bytes_max);
    if (!body) co_return;  // The server answers: 400, 408 or 413.
    // Without exceptions: malformed JSON is a value of its own.
    const Json sent = Json::parse(body->coalesce(), nullptr, false);
    if (!sent.is_object() || !sent.contains("text") || !sent["text"].is_string()) {
      response.send_error(Status::bad_request, "expected {\"text\": \"...\"}");
      co_return;
    }
    if (notes_.size() == notes_max) {
      response.send_error(Status::insufficient_storage, "too many notes");
      co_return;
    }
    const auto added = notes_.emplace(++last_id_, sent["text"].get<std::string>()).first;
    response.set_status(Status::created);
    response.headers().set("Location", "/notes/" + std::to_string(last_id_));
    send_json(response, json_of(*added));
  }

  void list(tambour::http::Response& response) const {
    Json all = Json::array();
    for (const auto& note : notes_) all.push_back(json_of(note));
    send_json(response, all);
  }

  /// The note that the path names. If there is none, the request is answered.
  Stored::iterator find(tambour::http::Request& request, tambour::http::Response& response) {
    const auto id = request.parameter_as<int>("id");
    if (!id) return notes_.end();  // The server answers: 400 with the name of the parameter.
    const auto note = notes_.find(*id);
    if (note == notes_.end()) response.send_error(Status::not_found, "no such note");
    return note;
  }

  static Json json_of(const Stored::value_type& note) {
    return {{"id", note.first}, {"text", note.second}};
  }
  static void send_json(tambour::http::Response& response, const Json& json) {
    response.headers().set("Content-Type", "application/json");
    // Text that is not valid UTF-8 is replaced, because JSON cannot contain it.
    response.send(json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
  }

  Stored notes_;
  int last_id_ = 0;
};
