// The server on Go's crypto/tls: server CERTIFICATE PORT BYTES. Answers "GET /BYTES" from memory, on
// one processor.
package main

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
)

func serve(connection net.Conn, request []byte, answer []byte) {
	defer connection.Close()
	received := make([]byte, 0, 1024)
	for {
		size, err := connection.Read(received[len(received):cap(received)])
		if err != nil {
			return
		}
		received = received[:len(received)+size]
		if !bytes.HasSuffix(received, []byte("\r\n\r\n")) {
			continue
		}
		if !bytes.HasPrefix(received, request) {
			return
		}
		received = received[:0]
		if _, err := connection.Write(answer); err != nil {
			return
		}
	}
}

func main() {
	runtime.GOMAXPROCS(1)
	certificate, err := tls.LoadX509KeyPair(os.Args[1], os.Args[1])
	if err != nil {
		panic(err)
	}
	size, err := strconv.Atoi(os.Args[3])
	if err != nil {
		panic(err)
	}
	answer := append([]byte(fmt.Sprintf("HTTP/1.1 200 OK\r\nServer: bench\r\n"+
		"Content-Type: application/octet-stream\r\nContent-Length: %d\r\n"+
		"Connection: keep-alive\r\n\r\n", size)), bytes.Repeat([]byte("b"), size)...)
	request := []byte(fmt.Sprintf("GET /%d ", size))
	configuration := &tls.Config{Certificates: []tls.Certificate{certificate}}
	listener, err := tls.Listen("tcp", "127.0.0.1:"+os.Args[2], configuration)
	if err != nil {
		panic(err)
	}
	for {
		connection, err := listener.Accept()
		if err != nil {
			panic(err)
		}
		go serve(connection, request, answer)
	}
}
