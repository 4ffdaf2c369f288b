// The other end of peers_test: a client or an echo server of github.com/gorilla/websocket.
//
//	peers.go client URL [deflate]   sends messages of many sizes, and expects them back
//	peers.go server                 prints its port, and echoes until its input ends
package main

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/gorilla/websocket"
)

var sizes = []int{0, 1, 125, 126, 127, 65535, 65536, 300000}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func expect(condition bool, text string) {
	if !condition {
		log.Fatal(text)
	}
}

func echoed(conn *websocket.Conn, kind int, message []byte) {
	gotKind, got, err := conn.ReadMessage()
	check(err)
	expect(gotKind == kind && bytes.Equal(got, message),
		fmt.Sprintf("%d bytes were not echoed", len(message)))
}

func random(size int) []byte {
	message := make([]byte, size)
	_, err := rand.Read(message)
	check(err)
	return message
}

// Its write buffer is shorter than most messages, which are therefore sent in fragments.
func client(url string, deflate bool) {
	dialer := websocket.Dialer{
		Subprotocols:      []string{"v9.chat", "v1.chat"},
		EnableCompression: deflate,
		WriteBufferSize:   1000,
	}
	conn, response, err := dialer.Dial(url, nil)
	check(err)
	expect(conn.Subprotocol() == "v1.chat", "another subprotocol")
	extensions := response.Header.Get("Sec-WebSocket-Extensions")
	expect(strings.HasPrefix(extensions, "permessage-deflate") == deflate, extensions)
	for _, size := range sizes {
		text := []byte(strings.Repeat("\u00fc", size/2) + strings.Repeat("x", size%2))
		check(conn.WriteMessage(websocket.TextMessage, text))
		echoed(conn, websocket.TextMessage, text)
		binary := random(size)
		check(conn.WriteMessage(websocket.BinaryMessage, binary))
		echoed(conn, websocket.BinaryMessage, binary)
	}
	pong := ""
	conn.SetPongHandler(func(payload string) error {
		pong = payload
		return nil
	})
	for i := 0; i < 10; i++ {
		payload := "payload " + strconv.Itoa(i)
		deadline := time.Now().Add(time.Minute)
		check(conn.WriteControl(websocket.PingMessage, []byte(payload), deadline))
		check(conn.WriteMessage(websocket.TextMessage, []byte("after the ping")))
		echoed(conn, websocket.TextMessage, []byte("after the ping"))
		expect(pong == payload, "no pong")
	}
	var messages [500][]byte
	for i := range messages {
		messages[i] = random(100)
		check(conn.WriteMessage(websocket.BinaryMessage, messages[i]))
	}
	for _, message := range messages {
		echoed(conn, websocket.BinaryMessage, message)
	}
	closing := websocket.FormatCloseMessage(4001, "done")
	check(conn.WriteControl(websocket.CloseMessage, closing, time.Now().Add(time.Minute)))
	_, _, err = conn.ReadMessage()
	expect(websocket.IsCloseError(err, 4001), fmt.Sprint(err))
	fmt.Println("ok")
}

func server() {
	upgrader := websocket.Upgrader{EnableCompression: true, Subprotocols: []string{"v1.chat"}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	go http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer conn.Close()
		for {
			kind, message, err := conn.ReadMessage()
			if err != nil || conn.WriteMessage(kind, message) != nil {
				return
			}
		}
	}))
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	io.Copy(io.Discard, os.Stdin)
}

func main() {
	if os.Args[1] == "client" {
		client(os.Args[2], len(os.Args) > 3 && os.Args[3] == "deflate")
	} else {
		server()
	}
}
