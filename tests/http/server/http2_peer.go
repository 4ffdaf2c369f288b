// A client of http2_peers_test: net/http. It prints "ok".
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"os"
	"strings"
)

var client = &http.Client{Transport: &http.Transport{
	TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
	ForceAttemptHTTP2: true,
}}
var origin = "https://localhost:" + os.Args[1]

func check(is_right bool, what ...any) {
	if !is_right {
		fmt.Println(what...)
		os.Exit(1)
	}
}

// exchange returns the response and its body, after which its trailers are known.
func exchange(request *http.Request) (*http.Response, []byte) {
	response, err := client.Do(request)
	check(err == nil, err)
	defer response.Body.Close()
	check(response.ProtoMajor == 2, response.Proto)
	body, err := io.ReadAll(response.Body)
	check(err == nil, err)
	return response, body
}

func request(method, path string, body io.Reader) *http.Request {
	made, err := http.NewRequest(method, origin+path, body)
	check(err == nil, err)
	return made
}

func get(path string) string {
	_, body := exchange(request("GET", path, nil))
	return string(body)
}

func exchangeConcurrently() {
	done := make(chan string)
	for i := 0; i < 50; i++ {
		go func() { done <- get("/slow") }()
	}
	for i := 0; i < 50; i++ {
		check(<-done == "hello")
	}
}

func upload() {
	content := make([]byte, 3_000_000)
	rand.Read(content)
	_, body := exchange(request("POST", "/", bytes.NewReader(content)))
	check(bytes.Equal(body, content), "another body")
}

// The fields of each response are decoded by Go's HPACK.
func exchangeFields() {
	for round := 0; round < 200; round++ {
		sent := request("GET", "/fields", nil)
		for i := 0; i < 9; i++ {
			value := strings.Repeat("v", rand.Intn(60)) + fmt.Sprint(rand.Intn(5))
			sent.Header.Set(fmt.Sprintf("X-%d", i), value)
		}
		response, _ := exchange(sent)
		for name := range sent.Header {
			check(response.Header.Get(name) == sent.Header.Get(name), name)
		}
	}
}

func exchangeTrailers() {
	sent := request("POST", "/", io.NopCloser(strings.NewReader("body")))
	sent.Trailer = http.Header{"X-Sum": {"4"}}
	response, body := exchange(sent)
	check(string(body) == "body", string(body))
	check(response.Trailer.Get("X-Sum") == "4", response.Trailer)
}

func receiveEarlyHints() {
	link := ""
	trace := &httptrace.ClientTrace{Got1xxResponse: func(code int, header textproto.MIMEHeader) error {
		link = fmt.Sprint(code, header.Get("Link"))
		return nil
	}}
	sent := request("GET", "/early", nil)
	_, body := exchange(sent.WithContext(httptrace.WithClientTrace(context.Background(), trace)))
	check(string(body) == "late" && link == "103</style.css>; rel=preload", link)
}

func cancelRequest() {
	before := get("/cancelled")
	cancellable, cancel := context.WithCancel(context.Background())
	trace := &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { cancel() }}
	sent := request("GET", "/wait", nil)
	_, err := client.Do(sent.WithContext(httptrace.WithClientTrace(cancellable, trace)))
	check(err != nil, "the request was not cancelled")
	for get("/cancelled") == before {
	}
}

func main() {
	check(get("/version") == "2")
	exchangeConcurrently()
	upload()
	exchangeFields()
	exchangeTrailers()
	receiveEarlyHints()
	cancelRequest()
	fmt.Println("ok")
}
