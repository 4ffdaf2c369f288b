// The names that snippets of the documents use without declaring them: see test_snippets.py. They
// are declared and never defined.
#pragma once

#include <array>
#include <charconv>
#include <chrono>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <tambour/tambour.h>

#include "faults/faults.h"

using namespace tambour;
using namespace std::chrono_literals;

extern EventLoop& loop;
extern LoopGroup& group;
extern TaskScope& scope;
extern const Endpoint& at;
extern const Endpoint& endpoint;
extern TcpServer& server;
extern TcpStream& stream;
extern TcpStream& peer;
extern Buffer& buffer;
extern http::Router& router;
extern http::Client& client;
extern http::Request& request;
extern http::Response& response;

Task<> echo(TcpStream peer);
template <class... Values>
void use(const Values&... values);
template <class Text>
void log(const Text& text);
