//go:build !go1.24

package main

import (
	"log"
	"net/http"
)

func useUnencryptedHTTP2(*http.Server) {
	log.Fatal("h2c needs Go 1.24")
}
