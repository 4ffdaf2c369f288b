//go:build go1.24

package main

import "net/http"

// The server supports only HTTP/2, by prior knowledge.
func useUnencryptedHTTP2(server *http.Server) {
	server.Protocols = new(http.Protocols)
	server.Protocols.SetUnencryptedHTTP2(true)
}
