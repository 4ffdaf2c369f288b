# The peers of the suite websocket that are written in other languages, or that Debian lacks. The
# group websocket-peers of tools/bootstrap installs what they need. Servers in Go and Rust are
# compiled with the modules that it has downloaded.

bench_peer_pkg_config(libwebsockets libwebsockets)
bench_peer(uwebsockets uwebsockets/App.h uSockets)
if(TARGET websocket-uwebsockets)
  target_link_libraries(websocket-uwebsockets PRIVATE ZLIB::ZLIB)
endif()

if(TARGET websocket-node)
  execute_process(COMMAND npm root --global OUTPUT_VARIABLE modules ERROR_QUIET
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
  target_compile_definitions(
    websocket-node PRIVATE NODE="${NODE}" NODE_VERSION="${NODE_VERSION}"
                           NODE_MODULES="${modules}"
                           NODE_SERVER="${CMAKE_CURRENT_SOURCE_DIR}/websocket/programs/server.js")
endif()

set(programs ${CMAKE_CURRENT_SOURCE_DIR}/websocket/programs)
set(modules_found 1)
if(GO)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env GOPROXY=off GOFLAGS=-mod=readonly
                          ${GO} list -deps . WORKING_DIRECTORY ${programs}/go
                  OUTPUT_QUIET ERROR_QUIET RESULT_VARIABLE modules_found)
endif()
if(modules_found EQUAL 0)
  set(go_server ${PROJECT_BINARY_DIR}/bench/websocket-go-server)
  add_custom_command(OUTPUT ${go_server} DEPENDS ${programs}/go/server.go ${programs}/go/go.mod
                     WORKING_DIRECTORY ${programs}/go
                     COMMAND ${CMAKE_COMMAND} -E env GOPROXY=off
                             GOCACHE=${PROJECT_BINARY_DIR}/bench/go-cache
                             ${GO} build -o ${go_server} .)
  add_custom_target(bench_websocket_go_server DEPENDS ${go_server})
  foreach(name gws coder)
    bench_subject(${name})
    bench_peer_found(${name})
    add_dependencies(websocket-${name} bench_websocket_go_server)
    target_compile_definitions(websocket-${name} PRIVATE GO_SERVER="${go_server}")
  endforeach()
else()
  bench_peer_missing(gws "not installed: tools/bootstrap websocket-peers downloads its module")
  bench_peer_missing(coder "not installed: tools/bootstrap websocket-peers downloads its module")
endif()

find_program(CARGO cargo PATHS $ENV{HOME}/.cargo/bin)
mark_as_advanced(CARGO)
set(modules_found 1)
if(CARGO)
  execute_process(COMMAND ${CARGO} metadata --offline --locked --format-version 1
                  WORKING_DIRECTORY ${programs}/rust
                  OUTPUT_QUIET ERROR_QUIET RESULT_VARIABLE modules_found)
endif()
if(modules_found EQUAL 0)
  set(rust_target ${PROJECT_BINARY_DIR}/bench/websocket-rust)
  set(rust_server ${rust_target}/release/server)
  add_custom_command(OUTPUT ${rust_server}
                     DEPENDS ${programs}/rust/server.rs ${programs}/rust/Cargo.toml
                     WORKING_DIRECTORY ${programs}/rust
                     COMMAND ${CARGO} build --release --offline --locked
                             --target-dir ${rust_target})
  add_custom_target(bench_websocket_rust_server DEPENDS ${rust_server})
  bench_subject(tungstenite)
  bench_peer_found(tungstenite)
  add_dependencies(websocket-tungstenite bench_websocket_rust_server)
  target_compile_definitions(websocket-tungstenite PRIVATE RUST_SERVER="${rust_server}")
else()
  bench_peer_missing(tungstenite
                     "not installed: tools/bootstrap websocket-peers downloads its crates")
endif()
