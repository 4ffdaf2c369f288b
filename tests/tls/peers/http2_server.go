// A server of HTTP/2 over TLS with Go's net/http, for tests/http/client/http2_servers_test.cpp.
//
//	http2_server PORT    serves at 127.0.0.1, until it is killed
//
// The working directory has cert.pem and key.pem.
package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"
)

var (
	server    http.Server
	cancelled atomic.Int32
)

func flush(w http.ResponseWriter) { w.(http.Flusher).Flush() }

// Answers extended CONNECT (RFC 8441) with the bytes that arrive.
func tunnel(w http.ResponseWriter, r *http.Request) {
	flush(w)
	bytes := make([]byte, 4096)
	for {
		n, err := r.Body.Read(bytes)
		w.Write(bytes[:n])
		flush(w)
		if err != nil {
			return
		}
	}
}

func answer(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodConnect {
		tunnel(w, r)
		return
	}
	switch r.URL.Path {
	case "/put/x", "/echo":
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Trailer", "X-Sum")
		w.Write(body)
		w.Header().Set("X-Sum", r.Trailer.Get("X-Sum"))
	case "/large":
		for i := 0; i < 8; i++ {
			io.WriteString(w, strings.Repeat("l", 1_000_000))
		}
	case "/hints":
		w.Header().Set("Link", "</style.css>")
		w.WriteHeader(http.StatusEarlyHints)
		io.WriteString(w, "hints")
	case "/wait":
		flush(w)
		<-r.Context().Done()
		cancelled.Add(1)
	case "/cancelled":
		for i := 0; i < 6000 && cancelled.Load() == 0; i++ {
			time.Sleep(10 * time.Millisecond)
		}
		fmt.Fprint(w, cancelled.Load())
	case "/abort":
		io.WriteString(w, "a part")
		flush(w)
		panic(http.ErrAbortHandler)
	case "/shutdown":
		go server.Shutdown(context.Background())
		time.Sleep(100 * time.Millisecond)
		io.WriteString(w, "last")
	default:
		io.WriteString(w, "small")
	}
}

func main() {
	server.Addr = "127.0.0.1:" + os.Args[1]
	server.Handler = http.HandlerFunc(answer)
	fmt.Println(server.ListenAndServeTLS("cert.pem", "key.pem"))
	time.Sleep(time.Minute) // After /shutdown, the handler goes on.
}
